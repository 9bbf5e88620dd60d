"""The page on which a backend is chosen and looked at before it is rendered."""
