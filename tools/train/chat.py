"""K3's chat format: messages to segments (text, or special token) and on to ids.

render() gives (piece, special, target) triples; target says that the model has to write the piece itself.  Each
text piece is encoded on its own.  lib/format/chat.c does the same for the program.
"""
import json

EFFORT = ("`thinking_effort` guides on how much to think in your thinking channel (not including the response "
          "channel), supported values include `low`, `medium`, `high`, and `max`.\n"
          "Now the system is invoked with `thinking_effort=%s`.")
DECLARE = "# Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n%s\n```"


class Page:
    def __init__(self):
        self.out = []

    def text(self, s, target=False):
        if s:
            self.out.append((s, False, target))

    def special(self, s, target=False):
        self.out.append((s, True, target))

    def open(self, tag, target=False, **attributes):
        self.special("<|open|>", target)
        self.text(tag, target)
        for k, v in attributes.items():
            for piece in (" " + k, '="', v.replace("&", "&amp;").replace('"', "&quot;"), '"'):
                self.text(piece, target)
        self.special("<|sep|>", target)

    def close(self, tag, target=False):
        self.special("<|close|>", target)
        self.text(tag, target)
        self.special("<|sep|>", target)

    def message(self, body, **attributes):
        self.open("message", **attributes)
        self.text(body)
        self.end()

    def end(self, target=False):
        self.close("message", target)
        self.special("<|end_of_msg|>", target)


def kind_of(value):
    names = {bool: "boolean", str: "string", int: "number", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")


def calls(page, tool_calls):
    page.open("tools", True)
    for i, c in enumerate(tool_calls):
        page.open("call", True, tool=c["function"]["name"], index=str(i + 1))
        for k, v in json.loads(c["function"]["arguments"]).items():
            page.open("argument", True, key=k, type=kind_of(v))
            page.text(v if isinstance(v, str) else json.dumps(v), True)
            page.close("argument", True)
        page.close("call", True)
    page.close("tools", True)


def assistant(page, m, thinking):
    page.open("message", role="assistant")
    if thinking:
        page.open("think")
        page.text(m.get("reasoning_content", ""), True)
        page.close("think", True)
    page.open("response", thinking)
    page.text(m["content"], True)
    page.close("response", True)
    if m.get("tool_calls"):
        calls(page, m["tool_calls"])
    page.end(True)


def render(doc, prompt=False):
    """prompt: add what starts a reply.  Results follow their calls, one each, in order."""
    page, names, result = Page(), {}, 0
    if doc.get("tools"):
        page.message(DECLARE % json.dumps(doc["tools"], separators=(",", ":"), sort_keys=True, ensure_ascii=False),
                     role="system", type="tool-declare")
    if doc["thinking"] and doc["effort"]:
        page.message(EFFORT % doc["effort"], role="system", type="thinking-effort")
    for m in doc["messages"]:
        if m["role"] == "assistant":
            assistant(page, m, doc["thinking"])
            names, result = {c["id"]: c["function"]["name"] for c in m.get("tool_calls", [])}, 0
        elif m["role"] == "tool":
            result += 1
            page.message(m["content"], role="tool", tool=names[m["tool_call_id"]], index=str(result))
        else:
            page.message(m["content"], role=m["role"])
    if prompt:
        page.open("message", role="assistant")
        page.open("think" if doc["thinking"] else "response")
    return page.out


def segments(doc):
    """A document with the token that ends it."""
    end = [("[EOS]", True, True)]
    return [(doc["text"], False, False)] + end if "text" in doc else render(doc) + end


def show(pieces):
    return "".join(s for s, _, _ in pieces)
