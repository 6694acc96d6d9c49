//! Files as the public server writes them, and files as it does not.
