"""Classes of a user, as parameters name them."""


class Encodes:
    def __init__(self, bonus: float = 0.0): ...
    def encode_queries(self, queries): ...
    def encode_documents(self, documents): ...


class Half:
    def encode_queries(self, queries): ...


class Says:
    def generate(self, prompts): ...


class Grades:
    scale = (1, 5)

    def score(self, query, answer): ...


class Backward:
    scale = (1, 0)

    def score(self, query, answer): ...


class Nothing: ...


class Fails:
    def __init__(self):
        raise KeyError("colour")

    def generate(self, prompts): ...


def rbp(relevant, n_relevant): ...


BASE = 0.8
