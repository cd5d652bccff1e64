"""Shared sums of the multiplication programs of common fields, as found by `multiplier_search`.

For each field (w, polynomial): a word for each constant from 1 on, two hexadecimal digits for each shared sum, which
are the mask of the inputs that it sums; "-" for none.
"""

__all__ = ["COSTS", "SHARED"]

SHARED: dict[tuple[int, int], str] = {
    (8, 0x11D): (
        "- - 84 c0 - 44 4cb0c0c3 - 24c0 a0 24d04238 a1 c068b0e1 b0c0234c 23e02718 c070 - 30e0f2f8 902134d2 a062 "
        "2285116a e0f49130 68944596 48d0 1160 b068135761 62585c74 50b0535cee 1831b53b e013487897 1c70819f 28 50 - - "
        "e0f81ae8 8992c9ed a438d0d1 4992 c068d4bd 5091 0a1450 098c 9068497a64 54495273 944a4568 82c30c34 48d8 "
        "32b34619ce 307881 9146a288 1a2cb0 a28999bd 2c0317 4623058cb3 a8aa50 c4dc3245b9 188c 84319cde 094b6fb0 "
        "0dc2f2fdff 068ecf2ce1 43d3dfff 18c4 60 41c8 - d060c2 81 - 03 54f40df6 c8d8ecb852 88c46476c9 458962 52a46834 "
        "4285 4992 4321a3 284298dc2d a891ead5 50a1b5 2815d5aa 4285 8114 - 1182c1 681c123d 8a15eab5 340e0d09 1155a2ab "
        "25944a 3441833659 86c72429 4592d3e3 4834 a249383c71 8c196272 38793cfb 607481 31c11a 0c426c11d3 1979fbf3 "
        "0dd016dd d0600d8dd6 8851cc4e a819ad5b 160c1d 0d4a94 140b52 1a25ad1b a80354ac 0512 2298dc99ee a2a38ccdbb "
        "461803 06 23638c19 114a 8c640bbcfc 054d877d 610e7ffe 165edeff 0a388ecfe7 62720e8fc7 434fdfff 296b7aad 1862 "
        "a038e13e - 182c3ac0 840b41 6846942f - 2407 68b0c221 84c2cee0f8 81 8348c0a0 - 60818d - 05 86e6fec4 "
        "280ece3ccf 456598dc32 4667889c 44323bcc 192a4666 229164 c8194423 d0a41a19 490c24a61e 5085 81184328 1924d992 "
        "4992 2151 11 d0d264656e 86c625 a854ead5 2a5155ba 284a8114 851442 54a8d5ea 4555a8aa 894214 432586 c0320a "
        "126491 - - 1160c1 41 141e1d92 8916add6 8a8fba753a 525e5fff 341c030e 1407 308a1555 13379b46 94251a 1337b61b "
        "a0191bb4 13b3b65b c18634f5 86b0f10b 49a23171 138831f117 4892 12 3449929a 434728 8c468819 46678873 "
        "381c9c79de 298cce79 81601a 06 83e0f805 e0b0904107 914668 a4438c6091 383c41e1 412c6359 68e8860b 31c206e2 "
        "0668966b 0dad6276 0e2fa23f 2337abea 0dad46d6 298479ff 0b 44830e 864a2589 03c8 880bc1 440aaa55 25889a4c8d "
        "8945ab55 a85456aa 8a9aabde 159555 25320ac897 5457676edc 525edeff 4cccddeed7 c1cddf 90238c 07c748e3b0 06 "
        "434f50 31398cce 294ace739e 1125 86518faf 3246b64fdf 81163e 139b84a6 030f3fbf 071fe0fe 071fdfff 858d9f5f70 "
        "071f7f 34112853e7 13211f5f 4324c7 071f 21b1bdff 989edfefa7 2535465ead 131f9f"
    ),
}

#: XORs of three operands of these programs: a hexadecimal digit for each constant from 1 on.
COSTS: dict[tuple[int, int], str] = {
    (8, 0x11D): (
        "88a9cbcbccecedebccdcceecddedeefdcdbccecdddceeeecdcdeededdeefdfddddcdba9dedeeeccdcdcdfcdeeeedeeedddfcefedeedcde"
        "eceddeddeeeddeeedeedfdfcedecebc8aeedededdeeddcdccdedeedccdcfebcccfdecdfdddeededdedcddedfdcbedfeefdfeeedddcccfe"
        "ceecddedceeeecdddddeefddceceefdddee"
    ),
}
