"""Keeping ResourceSlices on the API server as the drivers offer them."""
