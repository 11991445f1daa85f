"""Several instances of one program: who they are, how they find each other, what they exchange, how they are started."""
