"""What may be asked about what things are for: which one cuts, which one tells the time. No torch."""

from random import Random

from kestrel_tools.things.names import by_name
from kestrel_tools.things.scene import Scene

from .fact import Fact, names_of
from .questions import HERE, PICTURE
from .questions import asked as asked_of

QUESTIONS: dict[str, tuple[str, ...]] = {
    "with": (
        f"What [can|could|would|do] [you|I|we|people|one] {{}} with[| {HERE}]?",
        "What [here|of this|] [can be used|is used|is good|would you use] to {}?",
        "[What|Which] [thing|object|item|one] [is for|is used for|helps with|would help with] {1}?",
        "[What|Which] of [these|them|these things] [would|do|can|could] [you|I|we] {} with?",
        "[What|Which] of [these|the things|the objects] [can|could] [I|you|one] use to {}?",
        "I [want|need|would like|have] to {}, what [can|should|could] I [use|take]?",
        f"Is there [something|anything] in [the|this] {PICTURE} to {{}} with? What is it?",
        "If I had to {}, what [would|should] I [take|use]?",
        "[What|Which] [thing|object] do I need to {}?",
        "Name [something|the thing|what I need] to {} with.",
    ),
    "done": (
        f"[What|Which] [thing|things|] [can|could] [you|I|we|people|one] {{}}[| {HERE}]?",
        "[What|Which] of [these|them|these things] [can|could] [you|I|we|people] {}?",
        "[What|Which] of these [things|] [would|do] people {}?",
        f"Is there [something|anything] in [the|this] {PICTURE} that [you|I|people] can {{}}? What?",
        "What [is there|do we have] [here|] to {}?",
        "[Name|List] what [you|I|one] can {}.",
    ),
}  # fmt: skip

# What it is for (and the same as a noun), and the things that anybody would say are for it.
WITH: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("cut a ribbon", "cutting ribbons", ("scissors",)),
    ("cut hair", "cutting hair", ("scissors",)),
    ("cut cloth", "cutting cloth", ("scissors",)),
    ("drive in a nail", "driving in nails", ("hammer",)),
    ("chop wood", "chopping wood", ("axe",)),
    ("turn a screw", "turning screws", ("screwdriver",)),
    ("tighten a nut", "tightening nuts", ("wrench",)),
    ("make a note", "making notes", ("pencil",)),
    ("draw a line", "drawing lines", ("pencil",)),
    ("sketch", "sketching", ("pencil",)),
    ("take a photo", "taking photos", ("camera", "phone")),
    ("call somebody", "calling somebody", ("phone",)),
    ("tell the time", "telling the time", ("clock", "watch")),
    ("know what time it is", "telling the time", ("clock", "watch")),
    ("open a lock", "opening a lock", ("key",)),
    ("unlock a door", "unlocking a door", ("key",)),
    ("stay dry in the rain", "keeping dry", ("umbrella",)),
    ("see better", "seeing better", ("glasses", "magnifying glass")),
    ("make music", "making music", ("guitar", "trumpet", "violin", "drum")),
    ("cook", "cooking", ("frying pan",)),
    ("fry an egg", "frying eggs", ("frying pan",)),
    ("carry books", "carrying books", ("backpack",)),
    ("play tennis", "playing tennis", ("tennis racket",)),
    ("sing louder", "singing louder", ("microphone",)),
    ("light a dark room", "light in a dark room", ("light bulb", "candle")),
    ("camp outside", "camping", ("tent",)),
    ("fly to the moon", "flying to the moon", ("rocket",)),
)
DONE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("read", ("book",)),
    ("watch a movie on", ("television", "laptop", "phone")),
    ("wear", ("hat", "shoe", "boot", "dress", "shirt", "glasses", "watch", "crown", "backpack")),
    ("put on your feet", ("shoe", "boot")),
    ("put on your head", ("hat", "crown")),
    ("sit on", ("chair", "horse", "bicycle", "motorcycle", "camel", "bed")),
    ("sleep in", ("bed", "tent", "house")),
    ("live in", ("house",)),
    ("drink from", ("cup",)),
    ("kick", ("soccer ball", "basketball")),
    ("send by mail", ("envelope",)),
    ("ring", ("bell", "phone")),
    ("blow up at a party", ("balloon",)),
    ("unwrap", ("gift",)),
)
# Things beside which it is not asked, since people would differ on them.
ALSO_CUT = ("saw", "axe", "knife")
DISPUTED = {
    "cut a ribbon": ALSO_CUT,
    "cut hair": ALSO_CUT,
    "cut cloth": ALSO_CUT,
    "chop wood": ("saw",),
    "make music": ("bell", "microphone", "phone", "laptop"),
    "tell the time": ("phone", "laptop", "sun", "bell", "television"),
    "know what time it is": ("phone", "laptop", "sun", "bell", "television"),
    "call somebody": ("laptop", "bell"),
    "take a photo": ("laptop",),
    "make a note": ("laptop", "phone"),
    "draw a line": ("laptop", "phone"),
    "sketch": ("laptop", "phone"),
    "stay dry in the rain": ("tent", "house", "hat", "car", "boot"),
    "see better": ("light bulb", "candle"),
    "light a dark room": ("fire", "phone", "lightning", "sun", "moon", "television"),
    "cook": ("fire",),
    "carry books": ("car", "truck", "bus"),
    "camp outside": ("fire", "house"),
    "fly to the moon": ("airplane", "helicopter", "alien"),
    "open a lock": ("hammer", "saw", "screwdriver"),
    "unlock a door": ("hammer", "saw", "screwdriver"),
    "drive in a nail": ("axe", "wrench", "frying pan"),
    "read": ("phone", "laptop", "envelope", "watch", "clock"),
    "sit on": ("elephant", "cow", "car", "bus", "tractor", "gift", "train", "taxi"),
    "sleep in": ("car", "bus", "sailboat", "ship", "truck", "train"),
    "live in": ("tent", "sailboat", "ship", "bus"),
    "drink from": ("trophy", "drop"),
    "wear": ("umbrella",),
    "put on your head": ("glasses", "frying pan"),
    "kick": ("balloon", "watermelon"),
    "ring": ("clock", "trumpet", "drum"),
    "send by mail": ("gift", "book"),
    "watch a movie on": ("watch", "camera"),
}
ABSENT = 0.15  # of the questions about what is for nothing there


def use(rng: Random, scene: Scene) -> Fact | None:
    """Which of the things is for something, or nothing, where nobody would differ."""
    there = {item.noun for item in scene.items}
    if not there or scene.lines:
        return None
    fitting = [entry for entry in _ALL if not there.isdisjoint(entry[2])]
    if not fitting and rng.random() > ABSENT:
        return None
    words, noun, names = rng.choice(fitting or _ALL)
    if not there.isdisjoint(DISPUTED.get(words, ())):
        return None
    items = tuple(item for item in scene.items if item.noun in names)
    question = asked_of(rng, "with" if noun else "done", words, noun, among=QUESTIONS)
    return Fact("use", question, names_of(items) or "nothing", evidence=((words, items),) if items else ())


def _entries() -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    every = (*WITH, *((words, "", names) for words, names in DONE))
    unknown = {name for _, _, names in every for name in names} - set(by_name())
    if unknown:
        raise ValueError(f"uses of things that there are not: {sorted(unknown)}")
    return every


_ALL = _entries()
