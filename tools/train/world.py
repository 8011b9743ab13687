"""The micro-world: people move, give and count things, and are asked about it.

story() and chat() make documents without end from a random.Random, so data is free and every answer is known.
A document is {"text": ...} or {"messages": [...], "tools": [...], "thinking": bool, "effort": ...} in OpenAI's shape.
"""
import json

GIRLS = "Anna Clara Emma Grace Iris Kate Mia Nina Olga Rosa Vera Zoe".split()
BOYS = "Ben David Finn Henry Jack Leo Max Noah Paul Sam Tom Will".split()
PEOPLE = GIRLS + BOYS
THINGS = "lamp book ball key cup hat box bag coin map knife spoon bell brush rope clock drum kite letter mirror pen " \
         "ring scarf basket".split()
PLACES = "kitchen garden attic cellar barn school shop library hall office park station bakery tower " \
         "stable harbour".split()
COLOURS = "red blue green yellow white black brown grey".split()
COUNTED = "apples pears eggs nuts stones shells flowers cakes plates chairs".split()
DRILLS = .45         # share of documents that only exercise remembering
EATEN = "apples pears eggs nuts cakes".split()
NUMBERS = "no one two three four five six seven eight nine ten".split()
GOODS = "bread milk cheese tea salt sugar honey rice soap wool paper oil".split()

PUT = ["{p} put the {o} in the {l}.", "{p} left the {o} in the {l}.", "{p} brought the {o} to the {l}.",
       "{p} carried the {o} to the {l}.", "{p} moved the {o} to the {l}.", "{p} hid the {o} in the {l}.",
       "Then {p} took the {o} to the {l}.", "After that, {p} placed the {o} in the {l}."]
FIRST = ["The {o} was in the {l}.", "There was a {o} in the {l}.", "At first the {o} was in the {l}."]
GIVE = ["{p} gave the {o} to {q}.", "{p} handed the {o} to {q}.", "{p} passed the {o} to {q}.",
        "{q} got the {o} from {p}.", "{q} took the {o} from {p}.", "{p} sold the {o} to {q}."]
GET = ["{p} picked up the {o}.", "{p} took the {o}.", "{p} found the {o}.", "{p} had the {o}.", "{p} bought the {o}.",
       "{p} wanted the {o} and took it."]
GO = ["{p} went to the {l}.", "{p} walked to the {l}.", "{p} ran to the {l}.", "{p} was in the {l}.",
      "{p} came to the {l}.", "Later {p} went back to the {l}."]
COUNT = ["There were {n} {c} in the {l}.", "{p} put {n} {c} in the {l}.", "{p} counted {n} {c} in the {l}.",
         "{p} saw {n} {c} in the {l}.", "In the {l} there were {n} {c}.", "The {l} had {n} {c}."]
COLOUR = ["The {o} was {k}.", "It was a {k} {o}.", "{p} painted the {o} {k}.", "{p} liked the {k} {o}.",
          "Everyone knew that the {o} was {k}.", "The colour of the {o} was {k}."]
FILL = ["The sun was warm.", "It rained all day.", "The wind was cold.", "A dog barked.", "A cat slept near the door.",
        "The birds sang.", "{p} was happy.", "{p} was tired.", "{p} sang a song.", "{p} told a joke.", "{p} laughed.",
        "{p} and {q} talked for a while.", "{p} and {q} are old friends.", "{p} looked at the sky.",
        "{p} had some tea.",
        "The day was long.", "The evening came.", "It was a quiet morning.", "{p} smiled at {q}.",
        "{p} waited for {q}.",
        "{p} thought about the sea.", "The street was empty.", "Some snow fell.", "{p} ate some bread.",
        "{p} closed the door.",
        "{p} asked {q} about the weather.", "The moon was bright.", "{p} did not say a word.", "{p} read for an hour.",
        "Nobody was in a hurry."]
OPEN = ["Once there was a {g} named {p}.", "{p} lived near the {l}.", "One day {p} met {q}.", "It was a fine day.",
        "This is a story about {p} and {q}.", "Long ago, {p} and {q} lived near the {l}.", "{p} woke up early."]
END = ["In the end everyone went home.", "That was the end of the day.", "{p} and {q} were happy.",
       "Then {p} went to sleep.",
       "And so the day ended.", "{p} was glad that it was over."]
FEEL = ["{S} was happy.", "{S} was tired.", "{S} sat down for a while.", "{S} liked it there.", "{S} sang a song.",
        "{S} wanted to go home.", "{S} smiled.", "{S} had a long day."]


class World:
    """What is true now: where things and people are, who holds what, how many there are."""

    def __init__(self, rng, people=3, things=4, places=5):
        self.r = rng
        self.people, self.things = rng.sample(PEOPLE, people), rng.sample(THINGS, things)
        self.places, self.counted = rng.sample(PLACES, places), rng.sample(COUNTED, 2)
        self.facts = {}             # (kind, subject) -> value, the latest one last
        self.cast, self.props = self.people, self.things    # who acts and what is touched now

    def turn(self, keep=()):
        """Others come on: facts about those who rest stand for a while.  `keep`: subjects that rest in any case."""
        r = self.r
        cast, props = [p for p in self.people if p not in keep], [o for o in self.things if o not in keep]
        self.cast = r.sample(cast, max(2, (len(cast) + 1) // 2))
        self.props = r.sample(props, max(1, len(props) // 2))

    def fill(self, phrase, **given):
        p, q = self.r.sample(self.people, 2)
        who = given.get("p", p)
        q = q if q != who else p
        names = dict(p=who, q=q, l=self.r.choice(self.places), g="girl" if who in GIRLS else "boy",
                     S="She" if who in GIRLS else "He")
        return phrase.format(**{**names, **given})

    def learn(self, kind, subject, value):
        """A new fact is the last one of its subject: it moves to the end."""
        self.facts.pop((kind, subject), None)
        self.facts[kind, subject] = value

    def event(self):
        """One sentence that states a fact."""
        r, p = self.r, self.r.choice(self.cast)
        kind = r.choices(["thing", "go", "count", "colour"], [14, 3, 3, 2])[0]
        if kind == "go":
            return self.go(p)
        if kind == "count":
            c, l, n = r.choice(self.counted), r.choice(self.places), r.randint(2, 10)
            if ("count", (c, l)) not in self.facts:
                self.learn("count", (c, l), n)
                self.facts.pop(("person", p), None)
                return self.fill(r.choice(COUNT), p=p, c=c, l=l, n=NUMBERS[n])
        o = r.choice(self.props)
        if kind == "thing":
            return self.move(o, p)
        self.learn("colour", o, k := self.facts.get(("colour", o)) or r.choice(COLOURS))
        return self.fill(r.choice(COLOUR), p=p, o=o, k=k)

    def go(self, p):
        l = self.r.choice([l for l in self.places if l != self.facts.get(("person", p))])
        self.learn("person", p, l)
        return self.fill(self.r.choice(GO), p=p, l=l)

    def move(self, o, p):
        """What is somewhere is moved or taken by p; who has a thing puts it somewhere or gives it away."""
        r, was = self.r, self.facts.get(("where", o))
        if was in PEOPLE and was not in self.cast:
            return self.go(p)                       # it rests with its holder
        l, x = r.choice([l for l in self.places if l != was]), r.random()
        if was in PEOPLE and x < .45:
            q = r.choice([q for q in self.people if q != was])
            self.learn("where", o, q)
            return self.fill(r.choice(GIVE), p=was, q=q, o=o)
        if was not in PEOPLE and x < .35:
            self.learn("where", o, p)
            return self.fill(r.choice(GET), p=p, o=o)
        self.learn("where", o, l)
        if was is None and x < .7:
            return self.fill(r.choice(FIRST), o=o, l=l)
        who = was if was in PEOPLE else p
        self.facts.pop(("person", who), None)       # who carries things has moved too: not asked for
        return self.fill(r.choice(PUT), p=who, o=o, l=l)

    def filler(self):
        return self.fill(self.r.choice(FILL))

    def ask(self, key):
        """A question about a fact, its reasoning, its answer."""
        (kind, s), v, r = key, self.facts[key], self.r
        if kind == "where" and v in PLACES:
            q = r.choice(["Where is the {s}?", "Where did they put the {s}?", "In which place is the {s}?",
                          "Tell me where the {s} is."])
            return q.format(s=s), f"Last seen: the {s} in the {v}.", f"The {s} is in the {v}."
        if kind == "where":
            q = r.choice(["Who has the {s}?", "Where is the {s}?", "Who took the {s}?", "Tell me who has the {s}."])
            return q.format(s=s), f"Last seen: the {s} with {v}.", f"{v} has the {s}."
        if kind == "person":
            q = r.choice(["Where is {s}?", "Where did {s} go?", "In which place is {s}?", "Tell me where {s} is."])
            return q.format(s=s), f"Last seen: {s} in the {v}.", f"{s} is in the {v}."
        if kind == "count":
            q = r.choice(["How many {c} are in the {l}?", "How many {c} were in the {l}?", "Count the {c} in the {l}."])
            c, l = s
            return q.format(c=c, l=l), f"In the {l}: {NUMBERS[v]} {c}.", f"There are {NUMBERS[v]} {c} in the {l}."
        q = r.choice(["What colour is the {s}?", "What is the colour of the {s}?", "Which colour was the {s}?"])
        return q.format(s=s), f"The {s}: {v}.", f"The {s} is {v}."


def tell(w, sentences, fill, scene=0):
    """Sentences of events and of filler, in paragraphs; every `scene` sentences others come on."""
    out = []
    for i in range(sentences):
        if scene and i % scene == 0:
            w.turn()
        out.append(w.filler() if w.r.random() < fill else w.event())
        if i % 12 == 11:
            out[-1] += "\n"
    return " ".join(out).replace("\n ", "\n").strip()


def story(rng, sentences):
    w = World(rng, rng.randint(2, 3), rng.randint(2, 4), rng.randint(3, 5))
    p, q = w.people[:2]
    parts = [w.fill(s, p=p, q=q) for s in rng.sample(OPEN, 2)]
    while len(parts) < sentences - 2:
        if rng.random() < .25:
            who = rng.choice(w.people)
            parts += [w.go(who), w.fill(rng.choice(FEEL), p=who)]
        else:
            parts.append(w.filler() if rng.random() < .2 else w.event())
    for key in rng.sample(sorted(w.facts, key=str), min(2, len(w.facts))):
        parts.append("So in the end " + as_clause(w.ask(key)[2]))
    return {"text": " ".join(parts + [w.fill(rng.choice(END), p=p, q=q)])}


def as_clause(s):
    """"The lamp is in the hall." -> "the lamp was in the hall.": the past of an answer within a sentence."""
    for a, b in ((" is ", " was "), (" are ", " were "), (" has ", " had ")):
        s = s.replace(a, b)
    return s[0].lower() + s[1:] if s.startswith("The") else s


def settings(rng, doc):
    """Mostly without the system message on effort, for it is long and soon learned."""
    x = rng.random()
    doc["thinking"] = x < .88
    doc["effort"] = None if x < .60 or x >= .88 else "max" if x < .82 else rng.choice(["low", "high"])
    return doc


def say(question, reasoning, answer):
    return [{"role": "user", "content": question},
            {"role": "assistant", "reasoning_content": reasoning, "content": answer}]


def frame(rng, text, question):
    return rng.choice([text + "\n\n" + question, text + " " + question, text + "\n" + question,
                       "Read this. " + text + "\n\n" + question])


def recall(rng, sentences, turns, fill=.2, wide=False):
    """A story and questions about it, one a turn; some turns bring news."""
    people, things, places = (6, 10, 10) if wide else (4, 5, 5)
    w = World(rng, rng.randint(2, people), rng.randint(3, things), rng.randint(4, places))
    text = tell(w, sentences, fill, rng.choice([12, 25, 50, 100]) if wide else 0)
    if not w.facts:
        text += " " + tell(w, 1, 0)
    messages, asked = [], []
    for turn in range(turns):
        fresh = [k for k in w.facts if k not in asked[-2:]] or list(w.facts)
        if wide and rng.random() < .5:
            fresh = fresh[:(len(fresh) + 2) // 3]       # the oldest: questions reach far back
        key = rng.choice(fresh)
        asked.append(key)
        q, reasoning, answer = w.ask(key)
        messages += say(frame(rng, text, q) if text else q, reasoning, answer)
        text = tell(w, rng.randint(1, 2), .2) if rng.random() < .3 else ""
    return settings(rng, {"messages": messages})


def drill(rng, tokens):
    """A small world in plain text, with questions and answers between the events: many facts to bind in few tokens."""
    size = rng.choice([2, 2, 3, 4])
    w = World(rng, rng.randint(2, size + 1), rng.randint(2, size + 1), rng.randint(3, size + 2))
    pieces, left = [], tokens - 10
    while left > 30:
        text = tell(w, rng.randint(1, 2 * size), .05)
        left -= 9 * text.count(".")
        pieces.append((" " * bool(pieces) + text, False))
        for key in rng.sample(sorted(w.facts, key=str), min(len(w.facts), rng.randint(1, 2 * size))):
            question, _, answer = w.ask(key)
            pieces += [(" " + question, False), (" " + answer, True)]
            left -= 14
    return {"pieces": pieces}


def arithmetic(rng, turns):
    messages = []
    for _ in range(turns):
        a, b = rng.randint(1, 20), rng.randint(1, 20)
        x = rng.random()
        if x < .25:
            messages += say(*taking(rng))
            continue
        if x < .6:
            q, r, v = f"What is {a} plus {b}?", f"{a} + {b} = {a + b}", a + b
        else:
            a, b = max(a, b), min(a, b)
            q, r, v = f"What is {a} minus {b}?", f"{a} - {b} = {a - b}", a - b
        messages += say(q, r, f"It is {v}.")
    return settings(rng, {"messages": messages})


def taking(rng):
    """A sum in a story: some are there, somebody takes or brings some."""
    p, c, l, whole = rng.choice(PEOPLE), rng.choice(COUNTED), rng.choice(PLACES), rng.randint(4, 10)
    part = rng.randint(2, whole - 2)
    if rng.random() < .5:
        a, sign, v, news = whole - part, "+", whole, f"brought {NUMBERS[part]} more"
    else:
        verb = rng.choice(["took", "ate"]) if c in EATEN else "took"
        a, sign, v, news = whole, "-", whole - part, f"{verb} {NUMBERS[part]} of them"
    return (f"There were {NUMBERS[a]} {c} in the {l}. {p} {news}. How many {c} are in the {l}?",
            f"{a} {sign} {part} = {v}", f"There are {NUMBERS[v]} {c} in the {l}.")


def copying(rng, turns):
    messages = []
    for _ in range(turns):
        words = " ".join(rng.sample(THINGS + PLACES + COLOURS + GOODS, rng.randint(2, 8)))
        messages += say(rng.choice(["Repeat these words: ", "Say again: "]) + words, "I say them again.", words)
    return settings(rng, {"messages": messages})


TOOLS = [{"type": "function", "function": {
    "name": "lookup", "description": "Look up a word in the book.",
    "parameters": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}}}]
LOOK = ["Look up {g}.", "What does the book say about {g}?", "What is the price of {g}?",
        "Please look up {g} in the book.",
        "How much does {g} cost?", "Find {g} in the book."]


def lookup(rng, turns):
    """Each turn: a question, a call of lookup, its result, an answer made from it."""
    messages = []
    for i in range(turns):
        g, n = rng.choice(GOODS + THINGS), rng.randint(2, 60)
        the = "the " + g if g in THINGS else g
        call = {"name": "lookup", "arguments": json.dumps({"key": g})}
        messages += [{"role": "user", "content": rng.choice(LOOK).format(g=the)},
                     {"role": "assistant", "reasoning_content": f"I look up {the}.", "content": "",
                      "tool_calls": [{"id": f"c{i}", "type": "function", "function": call}]},
                     {"role": "tool", "tool_call_id": f"c{i}", "content": f"{g}: {n} coins"},
                     {"role": "assistant", "reasoning_content": f"The book says {n} coins.",
                      "content": f"The price of {the} is {n} coins."}]
    return settings(rng, {"messages": messages, "tools": TOOLS})


def document(rng, tokens):
    """A document of at most about `tokens` tokens."""
    if rng.random() < DRILLS:
        return drill(rng, min(tokens, rng.choice([120, 240, 480])))
    kind = rng.choices(["story", "recall", "lookup", "arithmetic", "copying"], [14, 58, 12, 7, 9])[0]
    if kind == "story":
        return story(rng, rng.randint(6, max(8, min(tokens // 11, 60))))
    if kind == "recall":
        turns = rng.randint(1, 4) if tokens < 400 else rng.randint(3, 6) if tokens < 1000 else rng.randint(4, 9)
        most = max(3, int((tokens - 55 * turns - 70) / (9 if tokens < 400 else 7)))
        return recall(rng, rng.randint(max(2, most * 2 // 3) if tokens > 1000 else 2, most), turns,
                      rng.choice([.1, .3, .6]) if tokens > 300 else .15, tokens > 300)
    turns = rng.randint(1, 3)
    if kind == "lookup":
        return lookup(rng, min(turns, 2))
    return (arithmetic if kind == "arithmetic" else copying)(rng, turns)
