"""Objects, functions and statements, by small scripts: the evaluator agrees with Python, or does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.support import told_by_python, told_by_the_scan

SCRIPTS = {
    "a dataclass: order": """\
from dataclasses import dataclass
@dataclass(order=True)
class A:
    x: int
    y: int = 2
WIDTH = 3 if A(1) < A(2) else 4
""",
    "a dataclass: eq": """\
from dataclasses import dataclass
@dataclass
class A:
    x: int
WIDTH = 3 if A(1) == A(1) else 4
""",
    "a dataclass: kw_only": """\
from dataclasses import dataclass
@dataclass(kw_only=True)
class A:
    x: int = 1
    y: int = 2
WIDTH = A(y=5).y
""",
    "a dataclass: field init false": """\
from dataclasses import dataclass, field
@dataclass
class A:
    x: int
    y: int = field(init=False, default=7)
WIDTH = A(3).y
""",
    "a dataclass: post_init initvar": """\
from dataclasses import dataclass, InitVar
@dataclass
class A:
    x: int
    k: InitVar[int] = 3
    def __post_init__(self, k):
        self.x += k
WIDTH = A(1, 4).x
""",
    "a dataclass: inherit override": """\
from dataclasses import dataclass
@dataclass
class A:
    x: int = 1
    y: int = 2
@dataclass
class B(A):
    x: int = 9
WIDTH = B(y=1).x
""",
    "a dataclass: replace": """\
from dataclasses import dataclass, replace
@dataclass
class A:
    x: int = 1
    y: int = 2
WIDTH = replace(A(), y=6).y
""",
    "a dataclass: asdict": """\
from dataclasses import dataclass, asdict
@dataclass
class A:
    x: int = 1
WIDTH = asdict(A(5))['x']
""",
    "a dataclass: fields": """\
from dataclasses import dataclass, fields
@dataclass
class A:
    x: int = 1
    y: int = 2
WIDTH = len(fields(A)) + 1
""",
    "a dataclass: default_factory": """\
from dataclasses import dataclass, field
@dataclass
class A:
    x: list = field(default_factory=list)
a, b = A(), A()
a.x.append(1)
WIDTH = len(b.x) + 3
""",
    "enum value": """\
import enum
class E(enum.Enum):
    A = 3
    B = 4
WIDTH = E['B'].value
""",
    "enum auto": """\
import enum
class E(enum.Enum):
    A = enum.auto()
    B = enum.auto()
WIDTH = E.B.value + 1
""",
    "enum by value": """\
import enum
class E(enum.Enum):
    A = 3
    B = 4
WIDTH = 5 if E(4) is E.B else 6
""",
    "enum iter": """\
import enum
class E(enum.Enum):
    A = 3
    B = 4
WIDTH = sum(e.value for e in E)
""",
    "enum method": """\
import enum
class E(enum.Enum):
    A = 3
    def up(self):
        return self.value + 1
WIDTH = E.A.up()
""",
    "intenum": """\
import enum
class E(enum.IntEnum):
    A = 3
WIDTH = E.A + 2
""",
    "strenum eq": """\
import enum
class E(str, enum.Enum):
    A = 'a'
WIDTH = 3 if E.A == 'a' else 4
""",
    "flag": """\
import enum
class E(enum.Flag):
    A = 1
    B = 2
WIDTH = 3 if E.A & (E.A | E.B) else 4
""",
    "enum alias": """\
import enum
class E(enum.Enum):
    A = 3
    B = 3
WIDTH = len(list(E)) + 2
""",
    "enum members": """\
import enum
class E(enum.Enum):
    A = 3
WIDTH = E.__members__['A'].value
""",
    "enum name": """\
import enum
class E(enum.Enum):
    A = 3
NAME = E.A.name
""",
    "property setter": """\
class A:
    def __init__(self): self._x = 1
    @property
    def x(self): return self._x
    @x.setter
    def x(self, v): self._x = v * 2
a = A()
a.x = 4
WIDTH = a.x
""",
    "classmethod alt": """\
class A:
    k = 2
    @classmethod
    def make(cls, n): return cls.k * n
class B(A):
    k = 3
WIDTH = B.make(2)
""",
    "super chain": """\
class A:
    def f(self): return 1
class B(A):
    def f(self): return super().f() + 1
class C(B):
    def f(self): return super().f() * 3
WIDTH = C().f()
""",
    "mro diamond": """\
class A:
    def f(self): return 'a'
class B(A):
    def f(self): return 'b' + super().f()
class C(A):
    def f(self): return 'c' + super().f()
class D(B, C):
    pass
NAME = D().f()
""",
    "slots": """\
class A:
    __slots__ = ('x',)
a = A()
a.x = 4
WIDTH = a.x
""",
    "getattr dunder": """\
class A:
    def __getattr__(self, n): return len(n)
WIDTH = A().abcd
""",
    "setattr dunder": """\
class A:
    def __setattr__(self, n, v): object.__setattr__(self, n, v + 1)
a = A()
a.x = 4
WIDTH = a.x
""",
    "delattr": """\
class A:
    x = 3
a = A()
a.x = 5
del a.x
WIDTH = a.x
""",
    "descriptor": """\
class D:
    def __get__(self, o, t=None): return 6
class A:
    x = D()
WIDTH = A().x
""",
    "descriptor set": """\
class D:
    def __set_name__(self, owner, name): self.n = '_' + name
    def __get__(self, o, t=None): return getattr(o, self.n)
    def __set__(self, o, v): setattr(o, self.n, v * 2)
class A:
    x = D()
a = A()
a.x = 4
WIDTH = a.x
""",
    "init_subclass": """\
class A:
    seen = []
    def __init_subclass__(cls, k=1): A.seen.append(k)
class B(A, k=4): pass
WIDTH = A.seen[0]
""",
    "class decorator": """\
def d(c):
    c.x = 5
    return c
@d
class A:
    x = 1
WIDTH = A.x
""",
    "class getitem": """\
class A:
    def __class_getitem__(cls, k): return k + 1
WIDTH = A[4]
""",
    "call dunder": """\
class A:
    def __call__(self, n): return n + 1
WIDTH = A()(4)
""",
    "contains": """\
class A:
    def __contains__(self, x): return x == 3
WIDTH = 4 if 3 in A() else 5
""",
    "iter class": """\
class A:
    def __iter__(self): return iter([4, 5])
WIDTH = sum(A())
""",
    "iter getitem": """\
class A:
    def __getitem__(self, i):
        if i > 2: raise IndexError
        return i
WIDTH = sum(A()) + 1
""",
    "len bool": """\
class A:
    def __len__(self): return 0
WIDTH = 3 if A() else 4
""",
    "bool": """\
class A:
    def __bool__(self): return False
WIDTH = 3 if A() else 4
""",
    "eq hash": """\
class A:
    def __init__(s, x): s.x = x
    def __eq__(s, o): return s.x == o.x
    def __hash__(s): return hash(s.x)
WIDTH = len({A(1), A(1), A(2)}) + 1
""",
    "eq dict": """\
class A:
    def __init__(s, x): s.x = x
    def __eq__(s, o): return s.x == o.x
    def __hash__(s): return hash(s.x)
WIDTH = {A(1): 5}[A(1)]
""",
    "lt sort": """\
class A:
    def __init__(s, x): s.x = x
    def __lt__(s, o): return s.x > o.x
WIDTH = sorted([A(1), A(3)])[0].x
""",
    "total_ordering": """\
import functools
@functools.total_ordering
class A:
    def __init__(s, x): s.x = x
    def __eq__(s, o): return s.x == o.x
    def __lt__(s, o): return s.x < o.x
WIDTH = 3 if A(2) >= A(1) else 4
""",
    "add radd": """\
class A:
    def __add__(s, o): return 5
    def __radd__(s, o): return 6
WIDTH = (A() + 1) * (1 + A())
""",
    "iadd": """\
class A:
    def __init__(s): s.x = 1
    def __iadd__(s, o):
        s.x += o
        return s
a = A()
a += 4
WIDTH = a.x
""",
    "neg": """\
class A:
    def __neg__(s): return 4
WIDTH = -A()
""",
    "index": """\
class A:
    def __index__(s): return 1
WIDTH = [3, 4][A()]
""",
    "int": """\
class A:
    def __int__(s): return 6
WIDTH = int(A())
""",
    "str": """\
class A:
    def __str__(s): return 'x'
    def __repr__(s): return 'r'
NAME = f'{A()}{A()!r}' + str(A())
""",
    "format": """\
class A:
    def __format__(s, spec): return spec + '!'
NAME = f'{A():ab}'
""",
    "enter exit": """\
class A:
    def __enter__(s): return 4
    def __exit__(s, *a): return True
WIDTH = 1
with A() as w:
    WIDTH = w
    raise ValueError
""",
    "try else finally": """\
WIDTH = 1
try:
    WIDTH += 1
except ValueError:
    WIDTH = 50
else:
    WIDTH += 2
finally:
    WIDTH *= 2
""",
    "raise from": """\
try:
    try:
        raise KeyError('a')
    except KeyError as e:
        raise ValueError('b') from e
except ValueError as e:
    WIDTH = 3 if isinstance(e.__cause__, KeyError) else 4
""",
    "exc args": """\
try:
    raise ValueError('a', 4)
except ValueError as e:
    WIDTH = e.args[1]
""",
    "exc class attr": """\
class E(Exception):
    def __init__(s, n): s.n = n
try:
    raise E(5)
except E as e:
    WIDTH = e.n
""",
    "exc tuple": """\
try:
    {}['a']
except (ValueError, LookupError):
    WIDTH = 4
""",
    "exc finally return": """\
def f():
    try:
        return 3
    finally:
        return 4
WIDTH = f()
""",
    "nested fn nonlocal": """\
def f():
    x = 1
    def g():
        nonlocal x
        x += 3
    g(); g()
    return x
WIDTH = f()
""",
    "global": """\
X = 1
def f():
    global X
    X = 6
f()
WIDTH = X
""",
    "late binding": """\
fs = [lambda: i for i in range(3)]
WIDTH = fs[0]() + 2
""",
    "default binding": """\
fs = [lambda i=i: i for i in range(3)]
WIDTH = fs[0]() + 2
""",
    "mutable default": """\
def f(x=[]):
    x.append(1)
    return len(x)
f()
WIDTH = f() + 1
""",
    "generator send": """\
def g():
    x = yield 1
    yield x + 1
it = g()
next(it)
WIDTH = it.send(4)
""",
    "generator return": """\
def g():
    yield 1
    return 5
def h():
    r = yield from g()
    yield r
WIDTH = list(h())[1]
""",
    "iter next state": """\
it = iter([1, 2, 3])
next(it)
WIDTH = sum(it)
""",
    "reversed lazy": """\
l = [1, 2]
r = reversed(l)
l.append(3)
WIDTH = list(r)[0]+1
""",
    "while else": """\
n = 0
while n < 3:
    n += 1
else:
    n += 5
WIDTH = n
""",
    "for else break": """\
for i in range(5):
    if i == 2: break
else:
    i = 50
WIDTH = i
""",
    "loop var after": """\
for i in range(5): pass
WIDTH = i
""",
    "modify while iter": """\
l = [1, 2, 3]
for x in l:
    if len(l) < 6: l.append(x)
WIDTH = len(l)
""",
    "dict modify copy": """\
d = {'a': 1, 'b': 2}
for k in list(d):
    del d[k]
WIDTH = len(d) + 3
""",
    "comp scope": """\
x = 9
[x for x in range(3)]
WIDTH = x
""",
    "walrus comp": """\
[y := i for i in range(4)]
WIDTH = y
""",
    "star unpack": """\
a, *b, c = range(6)
WIDTH = len(b)
""",
    "nested unpack": """\
(a, (b, c)), d = (1, (2, 3)), 4
WIDTH = b + c
""",
    "swap": """\
a, b = 1, 5
a, b = b, a
WIDTH = a
""",
    "chain assign": """\
a = b = [1]
a.append(2)
WIDTH = len(b) + 2
""",
    "slice assign": """\
l = [1, 2, 3, 4]
l[1:3] = [9]
WIDTH = l[1]
""",
    "slice step assign": """\
l = [1, 2, 3, 4]
l[::2] = [8, 9]
WIDTH = l[2]
""",
    "del slice": """\
l = [1, 2, 3, 4]
del l[1:3]
WIDTH = l[1]
""",
    "match class": """\
from dataclasses import dataclass
@dataclass
class P:
    x: int
    y: int
match P(1, 5):
    case P(x=1, y=n):
        WIDTH = n
    case _:
        WIDTH = 9
""",
    "match seq": """\
match [1, 2, 3]:
    case [1, *rest]:
        WIDTH = len(rest) + 2
    case _:
        WIDTH = 9
""",
    "match map": """\
match {'a': 4, 'b': 1}:
    case {'a': n, **kw}:
        WIDTH = n + len(kw)
    case _:
        WIDTH = 9
""",
    "match guard": """\
match 5:
    case n if n > 6:
        WIDTH = 3
    case 5 | 6:
        WIDTH = 4
""",
    "match str not seq": """\
match 'ab':
    case [a, b]:
        WIDTH = 3
    case str():
        WIDTH = 4
""",
    "singledispatch": """\
import functools
@functools.singledispatch
def f(x): return 3
@f.register
def _(x: str): return 4
WIDTH = f('a')
""",
    "decorator args": """\
def d(n):
    def o(f):
        return lambda *a: f(*a) + n
    return o
@d(3)
@d(1)
def g(x): return x
WIDTH = g(4)
""",
    "partialmethod": """\
import functools
class A:
    def f(s, a, b): return a * b
    g = functools.partialmethod(f, 3)
WIDTH = A().g(2)
""",
    "class var shared": """\
class A:
    x = []
A().x.append(1)
WIDTH = len(A().x) + 2
""",
    "class body loop": """\
class A:
    n = 0
    for i in range(3):
        n += i
WIDTH = A.n
""",
    "class comp scope": """\
class A:
    k = 2
    xs = [i for i in range(k)]
WIDTH = len(A.xs) + 1
""",
    "vars": """\
class A:
    pass
a = A()
a.x = 5
WIDTH = vars(a)['x']
""",
    "dict attr": """\
class A:
    pass
a = A()
a.__dict__['x'] = 5
WIDTH = a.x
""",
    "dict update attr": """\
class A:
    pass
a = A()
a.__dict__.update(x=5)
WIDTH = a.x
""",
    "type call": """\
A = type('A', (), {'x': 5, 'f': lambda s: s.x})
WIDTH = A().f()
""",
    "isinstance tuple sub": """\
class A: pass
class B(A): pass
WIDTH = 3 if isinstance(B(), (int, A)) else 4
""",
    "abc": """\
import abc
class A(abc.ABC):
    @abc.abstractmethod
    def f(s): ...
class B(A):
    def f(s): return 5
WIDTH = B().f()
""",
    "namedtuple cls": """\
from typing import NamedTuple
class P(NamedTuple):
    x: int
    y: int = 5
WIDTH = P(1).y
""",
    "typeddict": """\
from typing import TypedDict
class P(TypedDict):
    x: int
WIDTH = P(x=5)['x']
""",
    "assert": """\
try:
    assert 1 > 2, 'no'
    WIDTH = 3
except AssertionError:
    WIDTH = 4
""",
    "suppress": """\
import contextlib
WIDTH = 3
with contextlib.suppress(KeyError):
    {}['a']
    WIDTH = 4
""",
    "exitstack": """\
import contextlib
l = []
with contextlib.ExitStack() as s:
    s.callback(l.append, 1)
    n = len(l)
WIDTH = n + len(l) + 1
""",
    "contextmanager": """\
import contextlib
l = []
@contextlib.contextmanager
def m():
    l.append(1)
    yield 5
    l.append(2)
with m() as w:
    n = len(l)
WIDTH = w + n + len(l)
""",
    "nullcontext": """\
import contextlib
with contextlib.nullcontext(5) as w:
    WIDTH = w
""",
    "chained compare side": """\
n = []
def f(x):
    n.append(x)
    return x
1 < f(2) < 3
WIDTH = len(n) + 2
""",
    "short circuit side": """\
n = []
True or n.append(1)
WIDTH = len(n) + 3
""",
    "ternary nested": """\
x = 5
WIDTH = 1 if x < 3 else 2 if x < 6 else 3
""",
    "string mult concat": """\
NAME = 'a' * 3 + 'b'
""",
    "int division neg": """\
WIDTH = -7 // 2 + 10
""",
    "bool arith": """\
WIDTH = True + True + 2
""",
    "is none default": """\
def f(x=None):
    x = x or 5
    return x
WIDTH = f(0)
""",
    "unpack kwargs order": """\
def f(a, b=2, **k): return a + b + sum(k.values())
WIDTH = f(**{'a': 1, 'c': 3})
""",
    "dict order": """\
d = {'b': 1, 'a': 2}
d['b'] = 5
NAME = ''.join(d)
""",
    "sorted stable": """\
NAME = ''.join(sorted('bAaB', key=str.lower))
""",
    "list eq identity": """\
a = [1]
b = [1]
WIDTH = 3 if a is b else 4
""",
    "small int is": """\
a = 5
b = 5
WIDTH = 3 if a == b else 4
""",
    "print returns": """\
WIDTH = 3 if print() is None else 4
""",
    "ellipsis": """\
WIDTH = 3 if ... is Ellipsis else 4
""",
    "complex unpack call": """\
def f(*a, **k): return len(a) * 10 + len(k)
WIDTH = f(*[1, 2], 3, *(4,), x=1, **{'y': 2})
""",
    "async": """\
import asyncio
async def f(): return 5
WIDTH = asyncio.run(f())
""",
    "star expr list": """\
WIDTH = len([*range(2), *'ab'])
""",
    "multi inherit init": """\
class A:
    def __init__(s, **k): s.a = k.pop('a', 1); super().__init__(**k)
class B:
    def __init__(s, **k): s.b = k.pop('b', 2)
class C(A, B): pass
c = C(a=3, b=4)
WIDTH = c.a + c.b
""",
    "new": """\
class A:
    def __new__(cls, x):
        o = super().__new__(cls)
        o.x = x + 1
        return o
WIDTH = A(4).x
""",
    "singleton new": """\
class A:
    i = None
    def __new__(cls):
        if cls.i is None: cls.i = super().__new__(cls)
        return cls.i
WIDTH = 3 if A() is A() else 4
""",
    "subclass list": """\
class L(list):
    def total(s): return sum(s)
WIDTH = L([1, 2]).total() + len(L([1]))
""",
    "subclass dict": """\
class D(dict):
    def __getattr__(s, n): return s[n]
WIDTH = D(x=5).x
""",
    "subclass dict missing": """\
class D(dict):
    def __missing__(s, k): return 5
WIDTH = D()['x']
""",
    "subclass int": """\
class I(int):
    def up(s): return s + 1
WIDTH = I(4).up()
""",
    "subclass str": """\
class S(str):
    def up(s): return s + 'b'
NAME = S('a').up()
""",
    "simplenamespace": """\
from types import SimpleNamespace
n = SimpleNamespace(a=5)
n.b = 2
WIDTH = n.a + n.b
""",
    "userdict": """\
from collections import UserDict
class D(UserDict):
    def __getitem__(s, k): return 5
WIDTH = D(x=1)['x']
""",
    "cached_property": """\
import functools
class A:
    n = 0
    @functools.cached_property
    def x(self):
        self.n += 1
        return self.n
a = A()
a.x
WIDTH = a.x + 2
""",
    "lru_cache": """\
import functools
n = []
@functools.lru_cache
def f(x):
    n.append(x)
    return x
f(1); f(1)
WIDTH = len(n) + 2
""",
    "lru_cache maxsize": """\
import functools
n = []
@functools.lru_cache(maxsize=None)
def f(x):
    n.append(x)
    return x
f(1); f(2); f(1)
WIDTH = len(n) + 2
""",
    "__setattr__: super": """\
class A:
    def __setattr__(self, n, v): super().__setattr__(n, v * 2)
a = A()
a.x = 4
WIDTH = a.x
""",
    "__setattr__: map": """\
class A:
    names = {'y': 'x'}
    def __setattr__(self, n, v):
        super().__setattr__(self.names.get(n, n), v)
a = A()
a.y = 4
WIDTH = a.x
""",
    "__setattr__: dict": """\
class A:
    def __setattr__(self, n, v): self.__dict__[n] = v + 1
a = A()
a.x = 4
WIDTH = a.x
""",
    "__setattr__: object": """\
class A:
    def __init__(self): object.__setattr__(self, 'x', 5)
    def __setattr__(self, n, v): raise AttributeError
WIDTH = A().x
""",
    "__setattr__: init": """\
class A:
    def __init__(self): self.x = 2
    def __setattr__(self, n, v): super().__setattr__(n, v + 1)
WIDTH = A().x
""",
    "__setattr__: counter": """\
class A:
    n = 0
    def __setattr__(self, k, v):
        A.n += 1
        super().__setattr__(k, v)
a = A()
a.x = 1; a.y = 2
WIDTH = A.n
""",
    "enumerate from a number out of the environment": """\
import os
for n, c in enumerate("ab", int(os.environ.get("FIRST", 4))):
    WIDTH = n
""",
}
"""Scripts that set the width or the name of what they export."""

GAPS = {
    "a dataclass: eq false": """\
from dataclasses import dataclass
@dataclass(eq=False)
class A:
    x: int
WIDTH = 3 if A(1) == A(1) else 4
""",
    "a dataclass: frozen set": """\
from dataclasses import dataclass
@dataclass(frozen=True)
class A:
    x: int = 1
a = A()
try:
    a.x = 5
except Exception:
    pass
WIDTH = a.x + 2
""",
    "getattribute": """\
class A:
    x = 1
    def __getattribute__(self, n): return 7
WIDTH = A().x
""",
    "metaclass": """\
class M(type):
    def __new__(m, n, b, d):
        d['x'] = 6
        return super().__new__(m, n, b, d)
class A(metaclass=M):
    x = 1
WIDTH = A.x
""",
    "generator lazy": """\
seen = []
def g():
    seen.append(1)
    yield 1
g()
WIDTH = len(seen) + 3
""",
    "gen partial": """\
seen = []
def g():
    for i in range(5):
        seen.append(i)
        yield i
for x in g():
    if x == 1: break
WIDTH = len(seen) + 1
""",
    "zip consumed": """\
z = zip([1, 2], [3, 4])
list(z)
WIDTH = len(list(z)) + 3
""",
    "map lazy": """\
seen = []
m = map(seen.append, [1, 2])
WIDTH = len(seen) + 3
""",
    "filter consumed": """\
f = filter(None, [1, 2])
next(f)
WIDTH = len(list(f)) + 3
""",
    "aug attr order": """\
l = [0, 0]
i = 0
def n():
    global i
    i += 1
    return i
l[n() - 1] += 5
WIDTH = l[0]
""",
    "wraps attr": """\
import functools
def d(f):
    @functools.wraps(f)
    def w(*a): return f(*a) + 1
    return w
@d
def g(x): return x
WIDTH = g(4)
NAME = g.__name__
""",
    "abc inst": """\
import abc
class A(abc.ABC):
    @abc.abstractmethod
    def f(s): ...
try:
    A()
    WIDTH = 3
except TypeError:
    WIDTH = 4
""",
}
"""What is known to be taken for something else: iterators that run at once, results that are not kept, and the like."""


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_a_script_does_what_python_does_or_is_not_known(tmp_path: Path, name: str) -> None:
    read, ran = told_by_the_scan(tmp_path, SCRIPTS[name]), told_by_python(tmp_path, SCRIPTS[name])
    assert read.agrees(ran), (read, ran)


@pytest.mark.parametrize("name", sorted(GAPS))
@pytest.mark.xfail(strict=True, reason="the evaluator is known to be wrong here", raises=AssertionError)
def test_a_gap_is_closed(tmp_path: Path, name: str) -> None:
    read, ran = told_by_the_scan(tmp_path, GAPS[name]), told_by_python(tmp_path, GAPS[name])
    assert read.agrees(ran), (read, ran)
