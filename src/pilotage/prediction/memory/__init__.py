"""How much memory a program needs: the lifetimes of its tensors, and what a device adds."""
