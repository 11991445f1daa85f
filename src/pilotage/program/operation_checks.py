"""x"""
from typing import Any
def check_operation(node: Any, values: Any) -> None:
    """x"""
