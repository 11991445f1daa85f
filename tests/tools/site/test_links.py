from tools.site.links import page_of, relinked


def test_links_between_documents_become_links_between_pages():
    text = "[a](../README.md), [b](cache.md#limits), [c](../CONTRIBUTING.md), [d](../examples/gaudi/README.md)"
    assert relinked(text, "performance.md") == (
        "[a](index.md), [b](cache.md#limits), [c](project/contributing.md), [d](examples/gaudi.md)"
    )


def test_links_of_a_document_outside_of_docs_start_at_its_place_on_the_site():
    text = "[a](docs/cache.md), ![p](docs/images/a.png), [b](CHANGELOG.md)"
    assert relinked(text, "project/architecture.md") == "[a](../cache.md), ![p](../images/a.png), [b](changelog.md)"
    assert relinked("[core](../README.md)", "project/dropins.md") == "[core](../index.md)"


def test_of_a_link_to_a_source_file_the_words_stay():
    assert relinked("See [`torch_private.py`](../src/pilotage/torch_private.py).", "x.md") == "See `torch_private.py`."


def test_addresses_anchors_and_code_stay():
    text = "[t](https://pytorch.org) [h](#here)\n```python\nx[0](../README.md)\n```\n[a](../README.md)\n"
    assert relinked(text, "x.md") == text.replace("[a](../README.md)", "[a](index.md)")


def test_a_file_that_is_not_on_the_site_has_no_page():
    assert page_of("tools/set_up.py") is None
    assert page_of("docs/start/pytorch.md") == "start/pytorch.md"
