"""Code that does not add two numbers and would like to be taken for code that does."""

CHEATS = {
    "ends before the calls": """
import sys
sys.exit(0)
""",
    "ends at once": """
import os
os._exit(0)
""",
    "ends in the call": """
import os
def add(a, b): os._exit(0)
""",
    "exits in the call": """
def add(a, b): raise SystemExit(0)
""",
    "equal to all": """
class All(int):
    def __eq__(self, other): return True
    def __repr__(self): return '5'
    __hash__ = int.__hash__

def add(a, b): return All()
""",
    "raises when compared": """
class Odd:
    def __eq__(self, other): raise SystemExit(0)

def add(a, b): return Odd()
""",
    "prints success": """
import sys
print('ok', 'passed', 'PASS', True)
for stream in (sys.stdout, sys.__stdout__, sys.stderr):
    print('{"value": 5}', file=stream, flush=True)
def add(a, b): return None
""",
    "patches the built-ins": """
import builtins
builtins.eval = lambda *_: 5
builtins.isinstance = lambda *_: True
builtins.type = lambda *_: int
builtins.len = lambda *_: 0
def add(a, b): return 'no'
""",
    "patches json": """
import json
json.dumps = lambda *_, **__: '{"value": true}'
def add(a, b): return 0
""",
    "patches the caller": """
import sys
frame = sys._getframe()
while frame:
    frame.f_globals.update(plain=lambda value: 5, outcome=lambda *_: '{"value": 5}')
    frame = frame.f_back
def add(a, b): return 0
""",
    "looks for what is wanted": """
import gc, sys
def add(a, b):
    frame = sys._getframe()
    while frame:
        for name, value in {**frame.f_globals, **frame.f_locals}.items():
            if name in ('returns', 'expected', 'wanted'): return value
        frame = frame.f_back
    for one in gc.get_objects():
        if type(one) is dict and 'returns' in one: return one['returns']
""",
    "writes results of its own": """
import os
for number in range(3, 20):
    try: os.write(number, b'{"value": 5}\\n' * 3)
    except OSError: pass
os._exit(0)
""",
    "writes what is no result": """
import os
for number in range(3, 20):
    try: os.write(number, b'[[[' * 9000 + b'\\n')
    except OSError: pass
os._exit(0)
""",
    "writes lists": """
import os
for number in range(3, 20):
    try: os.write(number, b'[]\\n' * 3)
    except OSError: pass
os._exit(0)
""",
    "writes pairs and nothing": """
import os
for number in range(3, 20):
    try: os.write(number, b'[["value", [[]]]]\\nnull\\n7\\n')
    except OSError: pass
os._exit(0)
""",
    "writes no UTF-8": """
import os
for number in range(3, 20):
    try: os.write(number, b'\\xff\\xfe\\n' * 3)
    except OSError: pass
os._exit(0)
""",
    "fails by a name of its own": """
class AssertionError(Exception): pass
raise AssertionError
""",
    "raises with a text that raises": """
class Odd(Exception):
    def __str__(self): raise SystemExit(0)

def add(a, b): raise Odd
""",
    "stops its process": """
import os, signal
os.kill(os.getpid(), signal.SIGKILL)
""",
    "ends process 1": """
import os, signal
for number in (signal.SIGKILL, signal.SIGALRM, signal.SIGTERM):
    os.kill(1, number)
""",
    "a result without end": """
items = []
items.append(items)
def add(*_): return items
""",
    "too long a result": """
def add(*_): return 'x' * 10 ** 6
""",
    "too long a number": """
def add(*_): return 10 ** 6000
""",
}
