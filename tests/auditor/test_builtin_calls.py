"""What built-in functions and the standard library give, however they are called: what Python gives, or unknown."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.support import EXPORTER, judged, mutate, scan_apart, told_by_python, told_by_the_scan, write

IMPORTS = """\
import collections, copy, functools, itertools, json, math, operator, os, pathlib, re, string, textwrap
"""
CALLS = r"""
int('10', base=2)
int('10', 2)
int('ff', 16)
int(3.9)
int(-3.9)
int('  7 ')
int('1_0')
round(2.567, ndigits=1) * 10
round(2.5)
round(3.5)
round(1234, -2)
pow(2, 3, 5)
pow(2, 3)
len(repr('ab'))
len(repr(3))
len(str([1, 2]))
len(f"{'ab'!r}")
len(f"{3:>5}")
len(format(3, '05d'))
len(hex(255))
len(bin(5))
len(oct(8))
math.prod([2, 3], start=2)
math.prod([2, 3])
math.gcd(12, 18)
math.ceil(2.1)
math.floor(-2.1)
int(math.log2(8))
int(math.log(8, 2) + 0.5)
sum([1, 2], 5)
sum([1, 2], start=5)
list(enumerate('ab', 5))[0][0]
list(enumerate('ab', start=5))[1][0]
sorted([3, 1, 2], reverse=True)[0]
sorted([3, 1, 2], key=lambda x: -x)[0]
max([1, 2], key=lambda x: -x)
max([], default=4)
max(1, 5, 3)
min('abc', key=ord) == 'a'
len('a,b,c'.split(',', 1))
len('a,b,c'.split(sep=','))
len('a,b,c'.split(',', maxsplit=1))
len('a b'.split())
'abc'.find('c')
'abcabc'.count('b')
'abc'.index('c')
'abcabc'.rfind('b')
'abc'.find('a', 1)
len('abc'.replace('a', 'xx'))
len('aaa'.replace('a', 'b', 1))
len('a'.zfill(5))
len('a'.center(7, '*'))
len('  a '.strip())
len('xxaxx'.strip('x'))
len('a\tb'.expandtabs(4))
'abc' < 'abd'
len('abc'[::-1])
len(list(zip([1, 2], [3])))
len(list(range(10, 0, -3)))
list(range(5))[-1]
len(range(0, 10, 3))
range(3)[1]
2 in range(3)
len({1, 2, 2})
len({1, 2} | {3})
len({1, 2} - {1})
len({1, 2} ^ {2, 3})
len({**{'a': 1}, 'b': 2})
dict(a=1, b=2)['b']
dict([('a', 3)])['a']
{'a': 1}.get('b', 9)
{'a': 1}.setdefault('b', 8)
len({'a': 1, 'b': 2}.items())
list({'a': 1, 'b': 2})[1] == 'b'
dict.fromkeys('ab', 7)['a']
{'a': 1}.pop('a')
{'a': 1}.pop('z', 6)
divmod(17, 5)[1]
divmod(-17, 5)[1]
-17 // 5 + 10
-17 % 5
7 // 2
2 ** 3 ** 0
not 0
1 if [] else 2
1 if [0] else 2
any([0, 3])
all([])
all([1, 0])
abs(-4)
bool('')
float('2.5') * 2
ord('a')
len(chr(97))
len(bytes(3))
len(b'abc')
b'abc'[1]
len('é'.encode())
len('é'.encode('latin-1'))
len('abc'.encode(encoding='utf-16'))
list(reversed([1, 2, 3]))[0]
list(map(lambda a, b: a + b, [1, 2], [3, 4]))[1]
list(filter(None, [0, 5]))[0]
next(iter([4]))
next(iter([]), 4)
[1, 2, 3][slice(1, None)][0]
(lambda *a, **k: len(a) + len(k))(1, 2, x=3)
len([*range(3), 4])
[x for x in range(9) if x % 2][1]
sum(x * y for x in (1, 2) for y in (3, 4))
len('%s-%d' % ('a', 3))
len('%5.2f' % 3.14159)
len('{}-{b}'.format(1, b=2))
len('{0}{0}'.format('ab'))
len('{:>4}'.format(1))
len(f"{'a'}{1 + 1}")
len(f"{3.14159:.2f}")
len(','.join(str(i) for i in range(3)))
'a' 'b' == 'ab'
(1, 2) < (1, 3)
[1, 2] == [1, 2]
(3).bit_length()
int(2.0.is_integer())
(5).to_bytes(length=2, byteorder='big')[1]
int.from_bytes(b'\x01\x02', 'big')
int.from_bytes(b'\x01\x02', byteorder='little')
len('abc'.partition('b'))
len('A'.lower().upper().title())
'abc'.startswith(('x', 'a'))
'abc'.endswith('bc')
'Abc'.swapcase() == 'aBC'
len('a-b_c'.replace('-', '_').split('_'))
'abc'.isalpha()
'12'.isdigit()
len('a\nb'.splitlines())
len('a\nb\n'.splitlines(keepends=True)[0])
'abc'.translate({97: 'x'}) == 'xbc'
len('abc'.removeprefix('a'))
'x=1'.partition('=')[2] == '1'
re.sub('a', 'b', 'aaa', count=1).count('b')
re.sub('a', 'b', 'aaa', 1).count('b')
len(re.findall('[a-z]+', 'ab cd'))
int(re.match(r'(\d+)-(\d+)', '12-34').group(2))
int(re.match(r'(\d+)-(\d+)', '12-34')[1])
len(re.match(r'(\d+)-(\d+)', '12-34').groups())
len(re.match(r'(\d+)-(\d+)', '12-34').group(1, 2))
re.match(r'(\d+)-(\d+)', '12-34').start(2)
re.match(r'(\d+)-(\d+)', '12-34').span(2)[1]
int(re.match(r'(?P<a>\d+)', '12').group('a'))
int(re.match(r'(?P<a>\d+)', '12').groupdict()['a'])
len(re.split('[,;]', 'a,b;c', maxsplit=1))
int(re.compile(r'(\d+)').search('a7').group(1))
1 if re.fullmatch('a+', 'aab') else 2
functools.reduce(lambda a, b: a * b, [1, 2, 3], 2)
functools.partial(lambda a, b=1: a + b, 2)(b=5)
list(itertools.chain([1], [2, 3]))[2]
list(itertools.product([1, 2], [3, 4]))[3][1]
list(itertools.accumulate([1, 2, 3]))[-1]
list(itertools.islice(range(10), 2, 8, 3))[1]
len(list(itertools.zip_longest([1], [2, 3], fillvalue=0)))
collections.Counter('aab')['a']
collections.defaultdict(int)['x']
collections.OrderedDict(a=1)['a']
collections.deque([1, 2, 3], maxlen=2)[0]
len(collections.deque([1, 2, 3], maxlen=2))
collections.ChainMap({'a': 1}, {'a': 2})['a']
collections.namedtuple('P', 'x y')(1, 2).y
json.loads('{"a": [1, 2]}')['a'][1]
len(json.dumps({'a': 1}))
copy.deepcopy([1, [2]])[1][0]
operator.add(2, 3)
operator.itemgetter(1)([4, 5])
operator.attrgetter('real')(3)
len(os.path.join('a', 'b'))
len(os.path.splitext('a.b')[1])
len(os.path.basename('x/y.z'))
len(pathlib.Path('a/b.c').stem)
len(pathlib.Path('a/b.c').suffix)
len(str(pathlib.Path('a') / 'b'))
len(pathlib.Path('a/b/c').parts)
len(pathlib.Path('a/b.c').with_suffix('.d').name)
textwrap.dedent('  a') == 'a'
string.ascii_lowercase.index('c')
type(3) is int
type('a').__name__ == 'str'
callable(len)
hasattr('a', 'upper')
getattr('a', 'nope', 4)
id(1) == id(1)
max((3, 'a'), (3, 'b'))[0]
len(sorted({'b': 1, 'a': 2}))
sorted({'b': 1, 'a': 2}.items(), key=lambda kv: kv[1])[0][1]
sum(map(len, ['ab', 'c']))
list(zip(*[(1, 2), (3, 4)]))[0][1]
[1, 2, 3][-1]
[1, 2, 3].index(3)
[1, 2, 2].count(2)
len([1] * 3)
'ab' * 2 == 'abab'
(1, 2, 3)[1:][0]
5 & 3 | 8 ^ 1
~5 + 10
1 << 3 >> 1
3 == 3.0
0.1 + 0.2 == 0.3
True + 1
None is None
'a' is not None
1 < 2 < 3
1 < 3 < 2
[] or 5
0 and 5
'' or 0 or 7
f"{'ab'!r:>6}".count(' ')
len(f"{3!s:>5}")
len(f"{'é'!a}")
len(repr([1]))
int('z', base=36)
print is breakpoint
print == breakpoint
print is print
""".strip().splitlines()
"""Expressions of a number, or of what has a truth."""
_AT_ONCE = 25


@pytest.mark.parametrize("first", range(0, len(CALLS), _AT_ONCE))
def test_a_call_gives_what_python_gives_or_is_unknown(tmp_path: Path, first: int) -> None:
    calls = CALLS[first : first + _AT_ONCE]
    lines = [f"STATES.append('{n}=' + str(int({call})))\n" for n, call in enumerate(calls)]
    snippet = f"{IMPORTS}STATES = []\n{''.join(lines)}"
    read, ran = told_by_the_scan(tmp_path, snippet).states, told_by_python(tmp_path, snippet).states
    assert read is not None
    assert ran is not None
    told = [(call, mine, theirs) for call, mine, theirs in zip(calls, read, ran, strict=True)]
    assert not [row for row in told if "*" not in row[1] and row[1] != row[2]]
    assert sum("*" not in mine for mine in read) > len(calls) / 2  # what hardly any script does may stay unknown


SLOW = {
    "a choice inside a repetition": ("(a|a)*b", "a" * 40),
    "a repetition inside a repetition": ("(a+)+b", "a" * 40),
    "options, one behind another": ("a?" * 40 + "a" * 40, "a" * 40),
    "choices, one behind another": ("(a|a)" * 35 + "b", "a" * 35),
    "repetitions, one behind another": ("a*" * 12 + "b", "a" * 200),
    "a class of characters, again and again": (r"[ab]*[ab\]]*[^c]*[ab]*[ab]*c", "a" * 200),
}


@pytest.mark.parametrize("name", sorted(SLOW))
def test_an_expression_that_may_take_for_ever_is_not_tried(tmp_path: Path, name: str) -> None:
    pattern, text = SLOW[name]
    began = time.monotonic()
    read = told_by_the_scan(tmp_path, f"import re\nWIDTH = 3 if re.match({pattern!r}, {text!r}) else 4\n")
    assert read.width is None
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "call", ["round(3, -(10**9))", "(10).__pow__(10**9)", "b'a'.ljust(10**10)", "(1).__lshift__(10**11)"]
)
def test_a_number_that_takes_for_ever_to_make_is_not_made(tmp_path: Path, call: str) -> None:
    write(tmp_path, {"export.py": f"import coremltools as ct\nx = {call}\nct.convert(x)\n"})
    assert scan_apart(tmp_path, 10).files[0].path == "export.py"


@pytest.mark.parametrize("call", ["re.search('NAME', 'name', flags=re.I)", "re.sub('a', 'b', 'aaa', count=1) == 'baa'"])
def test_what_is_given_by_name_counts(tmp_path: Path, call: str) -> None:
    """Rows that are cut under such a condition are seen: the condition holds."""
    head = "        logits = self.head(x)\n"
    cut = f"{head}        if {call}:\n            logits = logits[:, -1:]\n"
    edits = (("import argparse\n", "import argparse\nimport re\n"), (head, cut))
    assert judged(tmp_path, mutate(EXPORTER, *edits)).verdict is not Verdict.ELIGIBLE
