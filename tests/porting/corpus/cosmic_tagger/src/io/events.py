import numpy


class event_fetcher(object):
    """Events with one long track for each of a few cosmics, and a small cluster for the neutrino."""

    def __init__(self, size=24, events=32, seed=5):
        random = numpy.random.RandomState(seed)
        self.images = 0.05 * random.rand(events, 3, size, size).astype("float32")
        self.labels = numpy.zeros((events, 3, size, size), dtype="float32")
        for event in range(events):
            for plane in range(3):
                column = random.randint(size)
                self.images[event, plane, :, column] += 1.0
                self.labels[event, plane, :, column] = 1
                row, start = random.randint(size - 4, size=2)
                self.images[event, plane, row:row + 4, start:start + 4] += 2.0
                self.labels[event, plane, row:row + 4, start:start + 4] = 2
        self.next = 0

    def fetch_next_batch(self, count):
        chosen = [(self.next + each) % len(self.images) for each in range(count)]
        self.next += count
        return {"image": self.images[chosen], "label": self.labels[chosen]}
