"""Attacks by strangers, and how a victim fares alone and beside them: `python -m tests.bench.attacks`.

`__main__` is the command line, `trial` runs one attack, `victim` measures, `attackers` and `receiver` are the other
side, `resolving` gives the server a resolver that knows the names used here, and `demands` judges. The attacks
themselves stand in the modules called `with_...`, each a function of the attack's name.
"""
