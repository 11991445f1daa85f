from tools.site.lists import spaced


def test_a_list_after_a_paragraph_gets_an_empty_line():
    assert spaced("Words:\n- one\n- two\n") == "Words:\n\n- one\n- two\n"


def test_what_belongs_to_an_item_gets_four_spaces():
    assert spaced("1. one\n   more\n\n   | a |\n2. two\n") == "1. one\n    more\n\n    | a |\n2. two\n"


def test_code_and_ordinary_text_stay():
    text = "Words\n```\n- no list\n  - here\n```\n  text\n"
    assert spaced(text) == text
