"""A backend of Triton as a vendor would install it, which compiles as far as TTIR."""
