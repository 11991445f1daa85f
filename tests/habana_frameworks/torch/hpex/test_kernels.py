"""Fused kernels compared with their formulas."""

import pytest

pytestmark = pytest.mark.slow


def test_attention_rotation_and_normalisation_match_their_formulas(alone):
    def program():
        from itertools import product

        import pytest
        import torch

        import habana_frameworks.torch.core  # noqa: F401
        from habana_frameworks.torch.hpex.kernels import FusedSDPA, RotaryPosEmbeddingHelperV2
        from habana_frameworks.torch.hpex.normalization import FusedRMSNorm

        torch.manual_seed(1)
        query, key, value = torch.randn(3, 2, 4, 6, 8).unbind()
        card = [each.to("hpu").requires_grad_() for each in (query, key, value)]
        found = FusedSDPA.apply(*card, None, 0.0, True, None, "fast", False)
        found.sum().backward()
        scores = (query @ key.mT / 8**0.5).masked_fill(torch.ones(6, 6).triu(1).bool(), float("-inf"))
        torch.testing.assert_close(found.cpu(), scores.softmax(-1) @ value)
        assert card[0].grad.is_hpu

        bias = torch.randn(6, 6)
        for side, causal, mask in product(("left", "right"), (False, True), (None, bias > -1, bias)):
            lengths = torch.tensor([6, 4])
            given = None if mask is None else mask.to("hpu")
            found = FusedSDPA.apply(
                *card, given, 0.0, causal, valid_sequence_lengths=lengths.to("hpu"), padding_side=side
            ).cpu()
            for number, length in enumerate(lengths.tolist()):
                # The result of torch's own function for the sequence without padding.
                own = slice(6 - length, 6) if side == "left" else slice(0, length)
                kept = torch.ones(length, length, dtype=torch.bool).tril() if causal else None
                if mask is not None and kept is not None:
                    kept = (
                        kept & mask[own, own]
                        if mask.dtype == torch.bool
                        else mask[own, own].masked_fill(~kept, -torch.inf)
                    )
                elif mask is not None:
                    kept = mask[own, own]
                parts = [each[number : number + 1, :, own] for each in (query, key, value)]
                expected = torch.nn.functional.scaled_dot_product_attention(*parts, attn_mask=kept)
                torch.testing.assert_close(found[number : number + 1, :, own], expected)
        with pytest.raises(ValueError, match="one length"):
            FusedSDPA.apply(*card, valid_sequence_lengths=torch.tensor([6, 5, 4]))
        with pytest.raises(ValueError, match="padding_side"):
            FusedSDPA.apply(*card, padding_side="middle")

        angles = torch.arange(10.0)[:, None] * torch.tensor([1.0, 0.1, 0.01, 0.001])
        tables = [torch.cat((part, part), -1)[None, None].to("hpu") for part in (angles.cos(), angles.sin())]
        positions = torch.tensor([[0, 1, 2, 3, 4, 5], [4, 5, 6, 7, 8, 9]])
        turned = RotaryPosEmbeddingHelperV2.apply(card[0], *tables, positions.to("hpu")).cpu()
        pairs = torch.complex(*query.chunk(2, -1)) * torch.polar(torch.ones(2, 6, 4), angles[positions])[:, None]
        torch.testing.assert_close(turned, torch.cat((pairs.real, pairs.imag), -1))

        weight = torch.rand(8)
        normal = FusedRMSNorm.apply(card[1], weight.to("hpu"), 1e-5).cpu()
        torch.testing.assert_close(normal, key / (key.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * weight)

    alone(program)
