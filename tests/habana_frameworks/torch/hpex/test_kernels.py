"""Fused kernels and operations compared with their formulas."""

import pytest

pytestmark = pytest.mark.slow


def test_attention_rotation_and_normalisation_match_their_formulas(alone):
    def program():
        import pytest
        import torch
        from torch.nn import functional

        import habana_frameworks.torch.core as htcore
        from habana_frameworks.torch.hpex.kernels import (
            CTCLoss,
            CustomSoftmax,
            FusedSDPA,
            PySDPA,
            PySDPAHinted,
            RotaryPosEmbeddingHelperV1,
            RotaryPosEmbeddingHelperV2,
            RotaryPosEmbeddingHelperV3,
            RotaryPosEmbeddingMode,
            Softmax,
            apply_rotary_pos_emb,
            fp8_fused_sdpa,
        )
        from habana_frameworks.torch.hpex.normalization import FusedRMSNorm

        torch.manual_seed(1)
        query, key, value = torch.randn(3, 2, 4, 6, 8).unbind()
        card = [each.to("hpu").requires_grad_() for each in (query, key, value)]
        found = FusedSDPA.apply(*card, None, 0.0, True, None, "FAST", False)
        found.sum().backward()
        scores = (query @ key.mT / 8**0.5).masked_fill(torch.ones(6, 6).triu(1).bool(), float("-inf"))
        torch.testing.assert_close(found.cpu(), scores.softmax(-1) @ value)
        assert card[0].grad.is_hpu
        for same in (PySDPA.apply(*card, True), PySDPAHinted.apply(*card, True)):
            torch.testing.assert_close(same, found)
        grouped = FusedSDPA.apply(card[0], card[1][:, :2], card[2][:, :2]).cpu()
        repeated = [each[:, :2].repeat_interleave(2, 1) for each in (key, value)]
        torch.testing.assert_close(grouped, functional.scaled_dot_product_attention(query, *repeated))

        # Mistakes that the vendor's kernel finds.
        for wrong, reason in (
            ((None, 0.0, False, None, "fast"), "causal attention only"),
            ((None, 0.0, True, None, "slow"), "softmax_mode"),
            ((None, 0.0, True, None, "None", None, None, "middle"), "seq_padding_type"),
            ((None, 0.0, True, None, "None", None, torch.tensor([6, 4])), "valid_seq_len needs"),
            ((None, 0.0, True, None, "None", True, None, "left", True), "return_dropout_mask"),
            ((None, 0.0, True, None, "None", None, None, "left", False, True), "inference only"),
        ):
            with pytest.raises(AssertionError, match=reason):
                FusedSDPA.apply(*card, *wrong)
        with htcore.hpu.sdp_kernel(enable_recompute=False):
            FusedSDPA.apply(*card, None, 0.0, False, None, "fast")
        with torch.no_grad():
            for side in ("left", "Right"):
                lengths = torch.tensor([6, 4])
                found = FusedSDPA.apply(*card, None, 0.0, True, None, "None", None, lengths.to("hpu"), side).cpu()
                for number, length in enumerate(lengths.tolist()):
                    # The result of torch's own function for the sequence without padding.
                    own = slice(6 - length, 6) if side == "left" else slice(0, length)
                    parts = [each[number : number + 1, :, own] for each in (query, key, value)]
                    expected = functional.scaled_dot_product_attention(*parts, is_causal=True)
                    torch.testing.assert_close(found[number : number + 1, :, own], expected)
            with pytest.raises(ValueError, match="one length"):
                FusedSDPA.apply(*card, None, 0.0, True, None, "None", None, torch.tensor([6, 5, 4]))
            out, weights, kept = FusedSDPA.apply(*card, None, 0.5, False, None, "None", False, None, "left", True, True)
            torch.testing.assert_close(weights.cpu(), (query @ key.mT / 8**0.5).softmax(-1))
            torch.testing.assert_close(out, weights * kept / 0.5 @ card[2])
        with pytest.raises(NotImplementedError, match="Use FusedSDPA"):
            fp8_fused_sdpa(*card)

        angles = torch.arange(10.0)[:, None] * torch.tensor([1.0, 0.1, 0.01, 0.001])
        tables = [torch.cat((part, part), -1)[None, None].to("hpu") for part in (angles.cos(), angles.sin())]
        positions = torch.tensor([[0, 1, 2, 3, 4, 5], [4, 5, 6, 7, 8, 9]])

        def rotated(states, places):
            pairs = torch.complex(*states.chunk(2, -1)) * torch.polar(torch.ones((*places.shape, 4)), angles[places])
            return torch.cat((pairs.real, pairs.imag), -1)

        turned = RotaryPosEmbeddingHelperV2.apply(card[0], *tables, positions.to("hpu"))
        torch.testing.assert_close(turned.cpu(), rotated(query, positions[:, None]))
        after = RotaryPosEmbeddingHelperV1.apply(card[0], *tables, 3)
        torch.testing.assert_close(after.cpu(), rotated(query, torch.arange(3, 9)[None, None]))
        gathered = [each[0, 0][positions.to("hpu")].unsqueeze(1) for each in tables]
        for same in (
            RotaryPosEmbeddingHelperV2.apply(card[0], *gathered, None),
            apply_rotary_pos_emb(card[0], *tables, positions.to("hpu")),
            torch.ops.hpu.rotary_pos_embedding(card[0], tables[1], tables[0], positions.to("hpu"), 0, 0),
        ):
            torch.testing.assert_close(same, turned)
        card[0].grad = None
        (turned * card[1].detach()).sum().backward()
        back = torch.ops.hpu.rotary_pos_embedding_backward(
            card[1].detach(), tables[1], tables[0], positions.to("hpu"), 0, 0
        )
        torch.testing.assert_close(back, card[0].grad)

        # Neighbours instead of halves: states of (length, batch, heads, size), of which the last two stay.
        states, cache = torch.randn(5, 2, 4, 8), torch.stack((angles[:, :3].cos(), angles[:, :3].sin()), -1)[:, None]
        found = RotaryPosEmbeddingHelperV3.apply(states.to("hpu"), cache.to("hpu")).cpu()
        pairs = torch.view_as_complex(states[..., :6].reshape(5, 2, 4, 3, 2)) * torch.polar(
            torch.ones(5, 1, 1, 3), angles[:5, None, None, :3]
        )
        torch.testing.assert_close(found[..., :6], torch.view_as_real(pairs).flatten(-2))
        assert torch.equal(found[..., 6:], states[..., 6:])
        torch.testing.assert_close(apply_rotary_pos_emb(states.to("hpu"), cache.to("hpu")).cpu(), found)
        spread = [part.repeat_interleave(2, -1)[:6].to("hpu") for part in (angles.cos(), angles.sin())]
        found = apply_rotary_pos_emb(card[0], *spread, None, 0, RotaryPosEmbeddingMode.PAIRWISE).cpu()
        pairs = torch.view_as_complex(query.reshape(2, 4, 6, 4, 2)) * torch.polar(torch.ones(6, 4), angles[:6])
        torch.testing.assert_close(found, torch.view_as_real(pairs).flatten(-2))

        weight = torch.rand(8)
        expected = key / (key.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * weight
        normal = FusedRMSNorm.apply(card[1], weight.to("hpu"), 1e-5, False, 1, True).cpu()
        torch.testing.assert_close(normal, expected)
        normal, inverse = torch.ops.hpu.rms_norm(card[1], weight.to("hpu"), 1e-5)
        torch.testing.assert_close(normal.cpu(), expected)
        torch.testing.assert_close(inverse.cpu(), (key.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt())

        triangle = Softmax.triu_masked_softmax(card[0] @ card[1].mT).cpu()
        torch.testing.assert_close(
            triangle, (query @ key.mT).masked_fill(torch.ones(6, 6).triu(1) > 0, -torch.inf).softmax(-1)
        )
        torch.testing.assert_close(CustomSoftmax.apply(card[0], 0).cpu(), query.softmax(-1))
        log_probs = torch.randn(7, 2, 5).log_softmax(-1)
        given = torch.tensor([[1, 2], [3, 4]]), torch.tensor([7, 6]), torch.tensor([2, 1])
        loss = CTCLoss.apply(log_probs.to("hpu"), given[0].to("hpu"), *given[1:])
        torch.testing.assert_close(loss.cpu(), functional.ctc_loss(log_probs, *given))

    alone(program)


def test_operations_match_their_formulas(alone):
    def program():
        import pytest
        import torch
        from torch.nn import functional

        import habana_frameworks.torch.core  # noqa: F401
        from habana_frameworks.torch.hpex.kernels.Fp8Ops import cast_to_fp8_v2

        torch.manual_seed(2)
        states, gates, ups, downs = torch.randn(5, 4), torch.randn(3, 6, 4), torch.randn(3, 6, 4), torch.randn(3, 4, 6)
        table, shares = torch.tensor([[2, 3], [3, 4], [2, 4], [4, 0], [1, 0]]), torch.rand(5, 2)
        expected = torch.zeros(5, 4)
        for row in range(5):
            for choice in range(2):
                number = table[row, choice].item() - 2  # the experts 2, 3 and 4 are here
                if 0 <= number < 3:
                    inner = functional.silu(gates[number] @ states[row]) * (ups[number] @ states[row])
                    expected[row] += shares[row, choice] * (downs[number] @ inner)
        here = [each.to("hpu") for each in (states, table, shares)]
        lists = [list(each.to("hpu").unbind()) for each in (gates, ups, downs)]
        common = {"permuted_weights": True, "activation": "silu", "experts_min": 2, "experts_max": 4}
        names = ("hidden_states", "expert_routing_table", "router_weights")
        given = dict(zip(names, here, strict=True))
        experts = torch.ops.hpu.mixture_of_experts
        torch.testing.assert_close(experts(**given, w1=lists[0], w2=lists[1], w3=lists[2], **common).cpu(), expected)
        fused = [torch.cat(pair) for pair in zip(lists[0], lists[1], strict=True)]
        torch.testing.assert_close(experts(**given, w12=fused, w3=lists[2], **common).cpu(), expected)
        scales = {f"d_scale_w{number}": [torch.full((3, 3), 2.0, device="hpu")] * 3 for number in (1, 2, 3)}
        halves = {f"w{number}": [each / 2 for each in lists[number - 1]] for number in (1, 2, 3)}
        blocks = experts(**given, **halves, **scales, block_size=2, **common)
        torch.testing.assert_close(blocks.cpu(), expected)

        wide = torch.tensor([0.3, -1000.0, 5.0]).to("hpu")
        small, largest = cast_to_fp8_v2(wide, torch.tensor(2.0).to("hpu"), False, True, torch.float8_e4m3fn)
        assert (small.dtype, largest.item()) == (torch.float8_e4m3fn, 1000.0)
        assert small.float().tolist() == pytest.approx([0.625, -448.0, 10.0])
        back = torch.ops.hpu.cast_from_fp8(small, torch.tensor(0.5).to("hpu"), torch.float32)
        assert back.tolist() == pytest.approx([0.3125, -224.0, 5.0])
        with pytest.raises(NotImplementedError, match="Stochastic"):
            cast_to_fp8_v2(wide, None, True, False, torch.float8_e5m2)
        left, right = (torch.randint(-4, 5, (4, 4)).float() for _ in range(2))
        product = torch.ops.hpu.fp8_gemm_v2(
            A=left.to("hpu", torch.float8_e4m3fn),
            trans_A=False,
            B=right.to("hpu", torch.float8_e4m3fn),
            trans_B=True,
            D=None,
            out_dtype=torch.bfloat16,
            A_scale_inv=torch.tensor(2.0).to("hpu"),
            B_scale_inv=torch.full((2, 2), 0.5).to("hpu"),
        )
        assert torch.equal(product.cpu(), (left @ right.mT).bfloat16())
        torch.testing.assert_close(
            torch.ops.hpu.softmax_fp8(wide, 0, None, None, wide / 100).cpu(), (wide * wide / 100).cpu().softmax(0)
        )
        with pytest.raises(NotImplementedError, match="float8"):
            torch.ops.hpu.softmax_fp8(wide, 0, wide)

        for decay in ((0.9,), (torch.tensor([0.9], device="hpu"), True)):
            weight, first, second, gradient = (torch.full((2,), value, device="hpu") for value in (1.0, 0.1, 0.2, 3.0))
            step = torch.tensor([-0.01], device="hpu")
            torch.ops.hpu.optimizer_adamw([gradient], [weight], [first], [second], step, 0.9, 0.99, 1e-8, *decay)
            moments = 0.9 * 0.1 + 0.1 * 3, 0.99 * 0.2 + 0.01 * 9
            assert (first[0].item(), second[0].item()) == pytest.approx(moments)
            assert weight[0].item() == pytest.approx(0.9 - 0.01 * moments[0] / moments[1] ** 0.5)

    alone(program)
