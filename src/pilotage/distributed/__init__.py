"""Several instances of one program: how they are launched, how they find each other, and what they exchange."""
