"""HPU graphs: captured once, replayed on the current contents of tensors."""

import pytest

pytestmark = pytest.mark.slow


def test_replayed_training_steps_equal_eager_ones_and_a_capture_runs_once(alone):
    def program():
        import pytest
        import torch

        import habana_frameworks.torch as ht

        def network():
            torch.manual_seed(8)
            made = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).to("hpu")
            return made, torch.optim.SGD(made.parameters(), lr=0.1, momentum=0.9)

        def step(model, optimizer, batch):
            optimizer.zero_grad(set_to_none=False)
            loss = model(batch).pow(2).mean()
            loss.backward()
            optimizer.step()
            return loss

        batches = torch.randn(4, 5, 4).to("hpu")
        eager, optimizer = network()
        losses = [step(eager, optimizer, batch).item() for batch in batches]

        for dry_run in (False, True):
            model, optimizer = network()
            found = [step(model, optimizer, batches[0]).item()]
            place = batches[1].clone()
            graph = ht.hpu.HPUGraph()
            with ht.hpu.graph(graph, dry_run=dry_run):
                loss = step(model, optimizer, place)
                assert ht.hpu.is_current_stream_capturing()
            assert not ht.hpu.is_current_stream_capturing()
            graph.mark_user_inputs([place])
            if not dry_run:
                found.append(loss.item())  # the capture itself was a step
            for number, batch in enumerate(batches[1 if dry_run else 2 :]):
                if number == 0:
                    place.copy_(batch)
                    graph.replay(asynchronous=True)
                elif number == 1:
                    graph.replayV3([batch])
                else:
                    graph.replayV2([place], [batch])
                found.append(loss.item())
            assert found == losses
            assert graph.get_user_input_match_indices() == [0]
            for one, other in zip(eager.parameters(), model.parameters(), strict=True):
                assert torch.equal(one.cpu(), other.cpu())

        graph = ht.hpu.HPUGraph()
        with pytest.raises(RuntimeError, match="A value was read while an HPU graph was captured"), ht.hpu.graph(graph):
            torch.ones(1, device="hpu").item()
        assert torch.ones(1, device="hpu").item() == 1

    alone(program)


def test_wrapped_modules_and_functions_run_as_graphs_and_obey_their_keywords(alone):
    def program():
        import pytest
        import torch

        import habana_frameworks.torch.hpu.graphs as htgraphs

        torch.manual_seed(9)
        plain = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).to("hpu").eval()
        calls = []
        plain.register_forward_pre_hook(lambda module, args: None)
        plain[0].register_forward_hook(lambda *_: calls.append(1))
        batches = [torch.randn(rows, 4).to("hpu") for rows in (2, 2, 5, 2, 7)]
        with torch.no_grad():
            expected = [plain(batch) for batch in batches]
            calls.clear()
            wrapped = htgraphs.wrap_in_hpu_graph(plain, max_graphs=2, dry_run=True)
            assert wrapped is plain
            assert all(torch.equal(wrapped(batch), one) for batch, one in zip(batches, expected, strict=True))
            assert len(calls) == 3  # two captures, and the third shape without a graph
            first, second = wrapped(batches[0]), wrapped(batches[1])
            assert torch.equal(first, expected[0])  # not overwritten
            assert torch.equal(second, expected[1])
            bypassed = wrapped(batches[0], bypass_hpu_graphs=True, warmup_mode=True, cache_tensors_list=[])
            assert torch.equal(bypassed, expected[0])
            assert bypassed is not first
            calls.clear()
            wrapped.clear_inputs()
            wrapped.clear_cache()
            with torch.autocast("hpu"):
                assert wrapped(batches[0]).dtype == torch.bfloat16
            assert wrapped(batches[0]).dtype == torch.float32
            assert len(calls) == 2

        wrapped.train()(batches[0]).sum().backward()  # without a graph, which would have no gradients
        assert wrapped[0].weight.grad is not None
        with torch.no_grad():
            doubled = htgraphs.wrap_in_hpu_graph_func(lambda values, factor=2: {"out": values * factor})
            assert torch.equal(doubled(batches[0])["out"], batches[0] * 2)
            assert torch.equal(doubled(batches[1], factor=3)["out"], batches[1] * 3)

        # The pieces that pipelines build their own caches from.
        nest = {"a": [batches[0], 3], "b": (batches[2],)}
        same = {"a": [batches[1], 3], "b": (batches[2] + 1,)}
        assert htgraphs.input_hash(nest) == htgraphs.input_hash(same)
        assert htgraphs.input_hash(nest) != htgraphs.input_hash({**nest, "a": [batches[0], 4]})
        graph = htgraphs.HPUGraph()
        inputs = {"a": [batches[0].clone(), 3], "b": (batches[2].clone(),)}
        graph.capture_begin()
        outputs = inputs["a"][0].sum() + inputs["b"][0].sum()
        graph.capture_end()
        assert torch.equal(outputs, batches[0].sum() + batches[2].sum())
        kept = htgraphs.CachedParams(inputs, outputs, graph)
        htgraphs.copy_to(kept.graph_inputs, same)
        kept.graph.replay()
        assert torch.equal(kept.graph_outputs, batches[1].sum() + (batches[2] + 1).sum())
        with pytest.raises(AssertionError, match="keys differ"):
            htgraphs.copy_to({"a": batches[0]}, {"b": batches[0]})

    alone(program)
