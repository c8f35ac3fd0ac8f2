"""How people may put a question, and what the model says about itself. All words of the world are here."""

from random import Random

QUESTIONS: dict[str, tuple[str, ...]] = {
    "colour": (
        "What color is the {}?",
        "What colour is the {}?",
        "Which color is the {}?",
        "What is the color of the {}?",
        "Tell me the color of the {}.",
        "Which color does the {} have?",
    ),
    "shape": (
        "What shape is {}?",
        "Which shape is {}?",
        "What is {}?",
        "What thing is {}?",
    ),
    "shape of": (
        "What shape is the {} object?",
        "What is the shape of the {} object?",
        "What is the {} thing?",
        "What shape is the {} thing?",
        "What is the {} shape?",
    ),
    "size": (
        "How big is the {}?",
        "What size is the {}?",
        "Is the {} big or small?",
        "Is the {} small or big?",
        "What is the size of the {}?",
    ),
    "where": (
        "Where is the {}?",
        "Where in the picture is the {}?",
        "What is the position of the {}?",
        "In which part of the image is the {}?",
    ),
    "count": (
        "How many {} are there?",
        "How many {} do you see?",
        "How many {} are in the picture?",
        "How many {} are in the image?",
        "How many {} can you see?",
        "Count the {}.",
        "What is the number of {}?",
    ),
    "presence": (
        "Is there {}?",
        "Is there {} in the picture?",
        "Is there {} in the image?",
        "Do you see {}?",
        "Can you see {}?",
        "Does the picture show {}?",
    ),
    "read": (
        "What does the text say?",
        "What is written here?",
        "What is written in the picture?",
        "Read the text.",
        "What text is in the image?",
        "What word is shown?",
        "What does it say?",
        "Which word do you see?",
        "What is the text?",
    ),
    "read number": (
        "What number is shown?",
        "Which number do you see?",
        "What is the number?",
        "Read the number.",
        "What number is written here?",
    ),
    "has text": (
        "Is there any text?",
        "Is there text in the picture?",
        "Is anything written here?",
        "Do you see a word or a number?",
    ),
    "describe": (
        "What is in the picture?",
        "What is in this image?",
        "What do you see?",
        "Describe the picture.",
        "Describe this image.",
        "What is shown here?",
        "What does the picture show?",
    ),
    "most left": (
        "What is the leftmost shape?",
        "Which shape is furthest left?",
        "What is on the far left?",
        "Which object is the leftmost?",
    ),
    "most right": (
        "What is the rightmost shape?",
        "Which shape is furthest right?",
        "What is on the far right?",
        "Which object is the rightmost?",
    ),
    "most top": (
        "What is the topmost shape?",
        "Which shape is highest?",
        "What is at the very top?",
        "Which object is the highest?",
    ),
    "most bottom": (
        "What is the lowest shape?",
        "Which shape is lowest?",
        "What is at the very bottom?",
        "Which object is the lowest?",
    ),
    "this": (
        "What is this?",
        "What is at this point?",
        "What is here?",
        "What is in this box?",
        "What object is this?",
        "What do you see here?",
    ),
    "this colour": (
        "What color is this?",
        "What colour is it?",
        "Which color is this?",
        "What color is it?",
    ),
    "this shape": (
        "What shape is this?",
        "What shape is it?",
        "Which shape is this?",
    ),
}

IN_A_SENTENCE = ("Answer in a sentence.", "Answer in a full sentence.", "Use a full sentence.")

PLURALS = {"cross": "crosses"}

OTHER_THINGS = (
    "dog", "cat", "car", "tree", "house", "person", "man", "woman", "bird", "horse", "table", "chair",
    "book", "phone", "cup", "bottle", "ball", "flower", "apple", "banana", "boat", "train", "bus",
    "bicycle", "sun", "moon", "cloud", "face", "hand", "eye", "shoe", "hat", "clock", "key", "door",
    "window", "road", "river", "mountain", "cow", "sheep", "fish", "elephant", "bear", "zebra",
    "giraffe", "pizza", "cake", "sandwich", "laptop", "keyboard", "mouse", "tv", "umbrella", "bag",
    "knife", "fork", "spoon", "bowl", "couch", "bed", "plane", "truck", "sign", "rectangle", "oval",
    "hexagon", "pentagon", "arrow", "line", "cube", "spiral", "crescent",
)  # fmt: skip


def question_of(rng: Random, kind: str, subject: str) -> str:
    forms = QUESTIONS[kind]
    question = rng.choice(forms).format(subject)
    chance = rng.random()
    if chance < 0.1:
        return question[:-1]
    if chance < 0.13:
        return f"{question} Answer with one word."
    if chance < 0.16:
        return f"Please tell me: {question}"
    return question


def sentence_of(rng: Random, question: str) -> str:
    question = question.removesuffix(" Answer with one word.")
    return f"{question} {rng.choice(IN_A_SENTENCE)}"


def plural(noun: str) -> str:
    return PLURALS.get(noun, noun + "s")
