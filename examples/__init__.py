"""Programs that show how gfcode is used."""
