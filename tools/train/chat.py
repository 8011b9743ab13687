"""K3's chat format: messages to segments (text, or special token) and on to ids.

render() gives (piece, special, target) triples; target says what the model has to write itself: MARKUP or BODY.  Each
text piece is encoded on its own.  lib/format/chat.c does the same for the program.
"""
import json

EFFORT = ("`thinking_effort` guides on how much to think in your thinking channel (not including the response "
          "channel), supported values include `low`, `medium`, `high`, and `max`.\n"
          "Now the system is invoked with `thinking_effort=%s`.")
DECLARE = "# Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n%s\n```"


MARKUP, BODY = 1, 2


class Page:
    def __init__(self):
        self.out = []

    def text(self, s, target=0):
        if s:
            self.out.append((s, False, target))

    def special(self, s, target=0):
        self.out.append((s, True, target))

    def open(self, tag, target=0, **attributes):
        self.special("<|open|>", target)
        self.text(tag, target)
        for k, v in attributes.items():
            for piece in (" " + k, '="', v.replace("&", "&amp;").replace('"', "&quot;"), '"'):
                self.text(piece, target)
        self.special("<|sep|>", target)

    def close(self, tag, target=0):
        self.special("<|close|>", target)
        self.text(tag, target)
        self.special("<|sep|>", target)

    def message(self, body, **attributes):
        self.open("message", **attributes)
        self.text(body)
        self.end()

    def end(self, target=0):
        self.close("message", target)
        self.special("<|end_of_msg|>", target)


def kind_of(value):
    names = {bool: "boolean", str: "string", int: "number", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")


def calls(page, tool_calls):
    page.open("tools", MARKUP)
    for i, c in enumerate(tool_calls):
        page.open("call", MARKUP, tool=c["function"]["name"], index=str(i + 1))
        for k, v in json.loads(c["function"]["arguments"]).items():
            page.open("argument", MARKUP, key=k, type=kind_of(v))
            page.text(v if isinstance(v, str) else json.dumps(v), BODY)
            page.close("argument", MARKUP)
        page.close("call", MARKUP)
    page.close("tools", MARKUP)


def assistant(page, m, thinking):
    page.open("message", role="assistant")
    if thinking:
        page.open("think")
        page.text(m.get("reasoning_content", ""), BODY)
        page.close("think", MARKUP)
    page.open("response", MARKUP if thinking else 0)
    page.text(m["content"], BODY)
    page.close("response", MARKUP)
    if m.get("tool_calls"):
        calls(page, m["tool_calls"])
    page.end(MARKUP)


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
    end = [("[EOS]", True, MARKUP)]
    if "text" in doc:
        return [(doc["text"], False, 0)] + end
    if "pieces" in doc:
        return [(s, False, BODY if answer else 0) for s, answer in doc["pieces"]] + end
    return render(doc) + end


def show(pieces):
    return "".join(s for s, _, _ in pieces)
