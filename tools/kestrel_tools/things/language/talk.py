"""What is not about the picture, or cannot be told from it: small talk, short honest answers. No torch."""

from random import Random

from kestrel_tools.scenes.world import COLOUR_NAMES, SHAPES
from kestrel_tools.things.names import nouns, plural, with_article
from kestrel_tools.things.vocabulary import MORE_WORDS

from .fact import CANNOT_TELL
from .more import talk as more_talk
from .questions import Asking, Question, asked
from .spelling import LETTERS, casual, chosen

NO_PICTURE = "There is no picture to look at."
ABILITIES = "I name, count, find and outline things and shapes, read short texts and simple charts."

# Questions that a drawing of things does not answer.
UNANSWERABLE = (
    "Who [is|are] [this|that|he|she|they|these people]?",
    "[What's|What is] [his|her|the person's|the man's|the woman's|its|the dog's|the cat's] name?",
    "How old is [he|she|it|this|the person|this person|the dog]?",
    "Where was [this|the] [picture|photo|image] taken?",
    "When was [this|the] [picture|photo|image|drawing] [taken|made|drawn]?",
    "Who [took|made|drew|painted] [this|the] [picture|photo|image|drawing]?",
    "[What|Which] [city|country|place|street] is [this|it|shown here]?",
    "[What|Which] [brand|make|model|breed] is [it|this|the car|the dog|the phone]?",
    "How much does [it|this|the car|the cake|that] cost?",
    "How much does [it|this|the dog|the elephant] weigh?",
    "[What's|What is] [he|she|it|the dog|the cat|the person] thinking[ about|]?",
    "[What's|What is] [he|she|the man|the woman|the person] [doing|wearing|saying|holding]?",
    "Why is [he|she|it|the person] [sad|happy|here|angry|laughing]?",
    "What happens next?",
    "What will happen [next|tomorrow|then]?",
    "What time is it [here|in the picture|there]?",
    "What is the weather [like|] [tomorrow|in Paris|outside]?",
    "Is [it|this] [expensive|dangerous|tasty|healthy|poisonous]?",
    "[What's|What is] behind [it|the camera|the wall]?",
    "What does [it|this] [smell|taste|sound|feel] like?",
    "[What|Which] camera was used?",
    "[What's|What is] the [temperature|distance|speed|weight|price]?",
    "Is [he|she|the person] [a man or a woman|married|famous|tall]?",
    "[What|Which] language does [he|she] speak?",
    "What is the license plate number?",
    "Which [song|book|movie] is this from?",
)  # fmt: skip

MORE_UNANSWERABLE = (  # the tokenizer was made without these
    "[What|Which] [day|month|year|season] [is|was] [it|this] [in the picture|here|]?",
    "[What|Which] hour was it when this was [drawn|taken|made]?",
    "How [far|long|deep|high] is [it|that|this] [in meters|in miles|really|]?",
    "How many [meters|miles|kilos|dollars|years] is [it|that|this]?",
    "Who [lives here|lives there|was here|did this|paid for it|is the owner|is the artist]?",
    "[What's|What is] the [name|age|phone number|address|job] of [the owner|this person|the artist]?",
    "Where does [it|this|that] [go|come from|lead|belong]?",
    "Where are they [going|from|now]?",
    "Why [did they do that|is it like that|is it there|was it made|did this happen]?",
    "What [happened|was here|came] before [this|that|]?",
    "What is [outside|just outside|beyond|beneath] the [picture|frame|image]?",
    "[What's|What is] on the [back|other side] [of the paper|of it|]?",
    "Is [it|that] [yours|his|hers|real gold|a gift for me|still available|fresh|safe]?",
    "Who [started it|is to blame]?",
    "What is [he|she|it] called?",
    "How [long|much time] did it take to [draw|make|paint] [this|it]?",
    "[What|Which] [pen|paint|program|paper|software] was used?",
    "What did [she|he|they] [say|do|eat|buy|want]?",
    "How [hot|cold|warm|loud|heavy|sweet] is it?",
    "When [will it|does it] [end|start|open|arrive|stop]?",
    "[What|Which] names do [they|these people|these animals|the people here] have?",
    "[Do|Does] [he|she|they|these two] know each other?",
    "How many [carbs|grams of sugar|vitamins] [are|is] in [it|this|that|them]?",
    "Is [this|it|that] [vegan|good for me|allowed|legal|worth it|healthy to eat]?",
)  # fmt: skip

# What the picture is, rather than what is in it.
MEDIUM: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        (
            "Is this a [photo|photograph|real photo]?",
            "Was this taken with a camera?",
            "Is this picture real?",
        ),
        "no",
    ),
    (("Is this a [drawing|illustration|cartoon]?", "Is it drawn?", "Is this clip art?"), "yes"),
    (
        (
            "Is this a photo or a drawing?",
            "[What|Which] [kind|type|sort] of [picture|image] is this?",
            "Is it a drawing or a photograph?",
        ),
        "a drawing",
    ),
)

# Whether there is one: the answer with a picture, and without. The tokenizer was made without these.
ARRIVED = (
    "Did [my|the] [picture|image|photo|file] [arrive|load|come through|upload]?",
    "Have you [got|received] [my|the] [picture|image|photo]?",
    "Is [my|the] [picture|image] [visible|there|readable|loaded]?",
    "Do you have [a|my|the] picture?",
    "Was [a|the] [picture|image] sent?",
)
SEEN_PICTURE = "Yes, I see it."

SMALL_TALK: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        (
            "[Hello|Hi|Hey|Hello there|Hi there|Good morning|Good evening|Good afternoon|Howdy|Yo][!|.|]",
            "[Hello|Hi|Hey] [Moondream|you|everybody|friend|robot][!|.|]",
            "[Nice|Pleased|Good] to meet you[!|.|]",
        ),
        "Hello! Show me a picture.",
    ),
    (
        (
            "What can you do[ for me|]?",
            "What are you [able to do|good at|for|capable of]?",
            "How can you help[ me|]?",
            "[Help|Help me|I need help][!|.|]",
            "What do you do?",
            "[What|Which] questions can I ask[ you|]?",
            "How do I use [you|this|it]?",
            "What [are your skills|should I ask]?",
            "How does this work?",
            "What can I ask[ you|]?",
            "What do you know[ about|]?",
        ),
        ABILITIES,
    ),
    (
        (
            "[Who|What] are you?",
            "[What's|What is] your name?",
            "Tell me about yourself.",
            "Introduce yourself.",
            "[What|Which] [model|program|AI] are you?",
            "Do you have a name?",
            "Are you [GPT|ChatGPT|Moondream|a big model]?",
        ),
        "I am a very small Moondream.",
    ),
    (
        (
            "[Thank you|Thanks|Thank you very much|Thanks a lot|Cheers|Thx][!|.|]",
            "[Great|Perfect|Cool|Nice|Good job|Well done][!|.|]",
        ),
        "You are welcome.",
    ),
    (("[Goodbye|Bye|Bye bye|See you|See you later|Good night|Farewell|Ciao][!|.|]",), "Goodbye!"),
    (
        ("How are you[ today| doing|]?", "How do you do?", "How is it going?", "What's up?", "Are you OK?"),
        "I am fine, thank you.",
    ),
    (
        ("Are you [a person|human|a robot|alive|real|an AI|a machine|conscious]?", "Do you have feelings?"),
        "I am a very small model.",
    ),
    (
        ("[What|Which] shapes do you know?", "[What|Which] shapes can you [recognize|see|name|detect]?"),
        "I know circles, squares, triangles, stars, crosses, rings, diamonds and hearts.",
    ),
    (
        ("[What|Which] colors do you know?", "[What|Which] colors can you [recognize|see|name]?"),
        "I know red, orange, yellow, green, cyan, blue, purple, pink, brown, black, gray and white.",
    ),
    (
        (
            "[What|Which] [things|objects|animals|food|vehicles] do you know?",
            "[What|Which] [things|objects] can you [recognize|see|name|detect|find]?",
            "How many [things|objects] do you know?",
        ),
        "I know about a hundred everyday things, such as animals, food, vehicles and tools.",
    ),
    (("Can you [read|read text|see text|do OCR]?",), "Yes, I read short texts."),
    (
        ("Can you [see|look at pictures|see pictures]?", "Do you understand pictures?"),
        "Yes, I look at pictures.",
    ),
    (
        ("Do you [speak|understand|know] [French|German|Spanish|Chinese|other languages|Italian]?",),
        "I only know English.",
    ),
    (
        (
            "What is the capital of [France|Germany|Spain|Japan|Italy]?",
            "[Tell me|Do you know] a [joke|story|secret|poem|riddle].",
            "[Write|Sing|Compose] [a poem|me a song|an essay|a letter|code|some Python].",
            "What is [love|life|the meaning of life|two plus two|2 + 2|the time]?",
            "How old are you?",
            "Where do you live?",
            "Who [is the president|won the game|made you|invented the telephone|are your parents]?",
            "[Translate|Summarize] this [book|text|page] [into French|for me].",
            "What time is it?",
            "What day is [it|today]?",
            "What's the weather[ like| today|]?",
            "Do you like [music|me|pizza|football]?",
            "Recommend a [book|movie|restaurant].",
            "Play [music|a game|chess].",
            "What should I [eat|do|wear][ today|]?",
        ),
        "I only know about what is in a picture.",
    ),
)

VISUAL = (
    *("colour", "size", "where", "count", "count", "presence", "presence any"),
    *("read", "describe", "list", "this one", "nearest", "has text", "most big", "ground"),
)


def babble(rng: Random) -> str:
    """Words without a question in them."""
    return " ".join(
        rng.choice(MORE_WORDS) if rng.random() < 0.7 else "".join(rng.choices(LETTERS, k=rng.randint(2, 8)))
        for _ in range(rng.randint(3, 9))
    )


def talk(rng: Random, with_picture: bool) -> tuple[str, str, str]:
    """What it is scored as, a question that is not about the things in a picture, and its answer."""
    chance = rng.random()
    if with_picture:
        if chance < 0.35:
            unanswerable: tuple[str, ...] = (*UNANSWERABLE, *MORE_UNANSWERABLE)
            return "cannot tell", _typed(rng, unanswerable, more_talk.MORE["cannot tell"]), CANNOT_TELL
        if chance < 0.4:
            return "talk", _typed(rng, ARRIVED, more_talk.MORE["arrived"]), SEEN_PICTURE
        if chance < 0.43:
            return "cannot tell", babble(rng), CANNOT_TELL
        if chance < 0.62:
            templates, answer = rng.choice(MEDIUM)
            return "medium", _typed(rng, templates, more_talk.MEDIUM[answer]), answer
    elif chance < 0.03:
        return "talk", _typed(rng, ARRIVED, more_talk.MORE["arrived"]), NO_PICTURE
    elif chance < 0.3:
        name = rng.choice(nouns()).name if rng.random() < 0.6 else rng.choice((*SHAPES, "thing", "object"))
        if rng.random() < 0.2:
            name = f"{rng.choice(COLOUR_NAMES)} {name}"
        kind = rng.choice(VISUAL)
        several = kind in ("count", "presence any", "list")
        subject = plural(name) if several else with_article(name) if kind == "presence" else f"the {name}"
        return "talk", asked(rng, kind, subject), NO_PICTURE
    templates, answer = rng.choice(SMALL_TALK)
    return "talk", _typed(rng, templates, more_talk.SMALL_TALK[answer]), answer


def _typed(rng: Random, templates: tuple[str, ...], more: tuple[str, ...]) -> Question:
    plain = chosen(rng, rng.choice(templates))
    return Question(casual(rng, plain), Asking(plain, more))
