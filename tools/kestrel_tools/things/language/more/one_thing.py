"""More ways to ask about one thing: its colour, its size, its place, what it is; and about print."""

from .marks import wordings

MORE = wordings("""
colour
<color> of {:bare} <please>
{:bare} <color>[?|]
What <color> {:bare}
{:bare} [what|which] <color>
{} <is> [what|which] <color>[?|]
<know> [what|which] <color> {} <is><end>
[Tell me|Say|Give me|State] [what|which] <color> {} <is>[.|]
What would you say is the <color> of {}?
How would you describe the <color> of {}?
In [what|which] <color> <is> {} [drawn|painted|shown|colored]?
[What|Which] <color> did <they> [paint|use for|give|choose for] {}?
[What|Which] <color> was used for {}?
[I'm|I am] color blind<then> [what|which] <color> <is> {}?
I [see|can see|found|spotted] {:a}<then> [What|Which] <color> <is> <it>?
Look, {:a}! [What|Which] <color> <is> <it>?
I want to [paint|draw|color] {} [too|]<then> [What|Which] <color> do I [need|use|take]?
If I had to paint {}, [what|which] <color> would I [need|use|take]?
What <color> [have|has] {}
Which <color> {} has
The <color> of {} is [what|...][?|]
[Mainly|Mostly|Roughly], [what|which] <color> <is> {}?
[What's|What is] the main <color> of {}?
[What|Which] <color> <does> {} look to you?
Can you [make out|recognize|see] the <color> of {}?
[Someone|My <kid>] asked me [what|which] <color> {} <is><then> [What do I say|Do you know|Help]<end>
About {}<then> [what|which] <color>?
Describe the <color> of {} [in one word|].

is colour
Is the <color> of {} {}?
{} <is> {}, [right|correct|yes|is that so]?
<claim> {} <is> {}<then> <right>?
<know> <whether> {} <is> {} [or not|]<end>
Did <they> [paint|color|draw] {} {}?
<Is> {} {} or not?
Is {1} the <color> of {0}?
Can you confirm that {} <is> {}?
{:bare} {}?
Would you call {} {}?
<Does> {} have the <color> {}?
<Does> {} look {} [to you|]?
Is it [true|correct|right] that {} <is> {}?
{} <is> {} - yes or no?
Look at {}<then> <Is> <it> {}?
[Check|Verify] <whether> {} <is> {}.

ground
Background <color> <please>
<color> of [background|the background|the backdrop][?|]
On [what|which] <color> [is it|is everything|is this] [drawn|painted|placed|shown]?
[What|Which] <color> is behind [everything|it all|all of it]?
[What's|What is] the <color> of the [backdrop|empty space|empty area|canvas]?
<know> [what|which] <color> the background [is|has]<end>
The background is [what|which] <color>?
In [what|which] <color> is the background [painted|filled|drawn]?
What is <color> of background
Look at the background<then> [What|Which] <color> is it?
[Name|Tell me|Give me] the background <color>.
If you [took|take] everything away, [what|which] <color> would be left?
[What's the|] bg <color>[?|]
[What|Which] <color> did <they> [use|choose|take] for the background?
[What|Which] <color> fills the background?

shape
[What|Which] shape does the {} [one|thing|figure|object] have?
What is the {} [figure|form|shape] called?
Name [the|that] {} [shape|figure] <please>
The {} [one|shape|figure]<then> [what is it|what shape is it|which shape]?
<know> [what|which] shape the {} [thing|object|one|figure] [is|has]<end>
Identify the {} [shape|figure].
The shape of the {} [thing|object|one][?|]
{} [shape|figure|thing|one] is what[?|]
I see something {}<then> [What|Which] shape is it?
What form has the {} [thing|one]
What kind of shape is the {} [one|thing|figure]?
In geometry, what is the {} [one|thing|figure] called?
One [thing|shape|figure] is {}<then> What shape is it?
My <kid> points at the {} [shape|figure]<then> what is it [called|]?

size
Size of {:bare}[?|]
{:bare} size[?|]
{:bare}, [big or small|small or big][?|]
<know> <whether> {} <is> [big or small|small or big|large or small]<end>
<Is> {} [rather big or rather small|more on the big or on the small side]?
Would you call {} [big or small|small or large]?
<Does> {} look [big or small|small or big|large or small]?
How would you describe the size of {}, [big or small|small or big]?
{} <is> [big or small|small or big]?
Of what size <is> {}?
[Tell me|Say] how [big|large] {} <is>.
I see {:a}<then> <Is> <it> [big or small|small or big]?
Did <they> draw {} [big or small|small or big|large or small]?
[What|Which] size <does> {} have?
Choose one<then> <is> {} [small or big|big or small]?
<Is> {} [big|large] or [small|little]?
Look at {}<then> [Big or small|Small or big]?

where
Wheres {}
Where {} <is>
Where <is> {} at?
Where {:bare}[?|]
{:bare} where[?|]
[Location|Position|Place] of {:bare} <please>
{:bare} [location|position][?|]
<know> where {} <is> [exactly|located|]<end>
[Show me|Say|Describe|Explain] where {} <is> [located|placed|].
In [which|what] [region|section|zone|part|area] [of <thepic>|] <is> {} [to be found|located|]?
[Which|What] part of <thepic> [has|contains|shows] {}?
Where should [I|we] look [for|to find|to see] {}?
Where [would|will] I [find|see|spot] {}?
I know there's {:a} [here|somewhere]<then> Where <is> <it> [exactly|]?
Where [roughly|exactly] <is> {}?
Whereabouts <is> {}?
Where did <they> [put|draw|place|hide] {}?
My <kid> [is looking for|can't find|wants to see] {}<then> Where <is> <it>?
Can you locate {} [for me|in <thepic>|]?
[Locate|Find] {} <please>
Find {} and tell me where <it> <is>.
If I look for {}, where do I have to look?
At what [place|position|spot] [in <thepic>|] <is> {}?
[What's|What is] the [approximate|rough] [position|location|place] of {} [in <thepic>|]?
[I'm|I am] blind<then> where <is> {}?
Could you direct me to {}?
Where on the [page|screen|sheet|paper] <is> {}?
[I see|There's] {:a}, but where [exactly|]?
In [what|which] place {} <is>
Where do I have to [point|click|look] to [hit|get|see] {}?
{}, where <is> <it>?
[Whats|What is] position of {:bare}

kind
Which {} [have we|do we have|have you got] here?
Name [the|that|this] {} <please>
Identify the {} [in <thepic>|here|].
The {}[:|,] [what is it|which one is it|what kind is it]?
[I see|There is|There's] {:a} [here|in <thepic>|]<then> [Which one|What kind|What is it]?
<know> [which|what|what kind of] {} [this is|it is|that is|is shown]<end>
Which {} did <they> draw?
What {} this is
What sort {} is it
[Type|Kind|Name] of {}[?|]
{} name?
One {} is [shown|drawn|hidden] here<then> Which [one|]?
Can you [name|identify|recognize] the {} [here|in <thepic>|]?
Look at the {}<then> What is it?
[What's|What is] the {} in <thepic> called?
[What|Which] {} [can be seen|is visible|is depicted|appears] [here|in <thepic>|]?
My <kid> asks [what|which|what kind of] {} [that|this|it] is.
[What|Which] {} [am I|are we] looking at?

is this
Is this [thing|object|] {} or not?
{}[?|, yes or no?]
{:bare}?
It's {}, [right|isn't it|correct|yes]?
<claim> [this|it|that] is {}<then> <right>?
<know> <whether> [this|it|that] is {} [or not|]<end>
Is what [I see|we see|is shown|you see] [here|] {}?
Does [this|it|that] look like {} [to you|]?
Is [that|this] [thing|object] [here|] {}?
Did <they> draw {}?
Do you think [this|it|that] is {}?
Would [you|people|anyone] recognize [this|it] as {}?
This is {}, yes or no?
Is [this|it|that] what you would call {}?
Does <thepic> [show|depict|represent] {}?
Is it [true|correct|right] that [this|it] is {}?
Is {} this?
Are we [looking at|dealing with] {} [here|]?
Can one say that [this|it] is {}?
What I [sent|uploaded|drew] is {}, [right|correct|isn't it]?

read
[What's|Whats] it say [here|]
What does it says
What say the [sign|text|word]
What is wrote [here|there]
What [is written|written] [in this|on this|here]
[Transcribe|OCR] [this|it|pls|please]
[Extract|Return|Output|Give me|Get] the text[.|]
[I can't|I cannot] [read|make out|decipher] [this|it]<then> [What does it say|Please read it to me]<end>
[I'm|I am] blind<then> what does [it|the text|the sign] say?
[Could|Would] you be so kind as to read [it|this|the text|the writing] [to me|out|aloud|for me]?
<know> what [it says|the text says|is written here|the sign says|the writing says|is printed there]<end>
[My <kid>|Grandma|My father] can't read [yet|this|it]<then> what does it say?
[What|Which] [words|word|text] can you [make out|read|recognize|decipher] [here|there|]?
[What's|What is] the [message|inscription|lettering|wording]?
Read [that|this|it|the sign|the letters] [out|aloud|for me|to us|].
What did <they> write [here|there|]?
[Which|What] text [appears|can be seen|is visible|stands there]?
What stands written [there|here|on it]?
What am I supposed to read [here|there]?
What does [that|this] read?
How does the [text|sign|inscription] read?
Type [out|] what it says.
Tell me what's written [here|there|].
Can [u|you] read [this|it|what it says] [for me|to me]?
Please spell out [the text|what is written].
[I see|There is] some writing<then> What does it say?
[Repeat|Quote|Copy] the [text|writing|words] [for me|].
I [don't have|lost] my [reading|] glasses<then> [what is written there|what does it say]?

read number
[What's|Whats] the [digit|number|figure] [here|there|]
Number <please>
Which number [this is|is it|can be seen|can you make out|stands there|is on it]?
<know> [what|which] number [it is|is shown|is written here|you see]<end>
I [can't|cannot] [read|make out] the number<then> What is it?
[Read me|Give me|Say|Read out] the number <please>
[What|Which] number did <they> write?
The number is [what|which|...]?
There's a number [here|there|on it]<then> [Which one|What is it]?
What are the digits?
Digits[?|]
[What|Which] number [is it|is that|am I looking at]?

has text
Any [text|writing|print] [here|in here|on it|in the pic|][?|]
<know> <whether> [there is any text|there is any writing|anything is written|it says anything] <here><end>
Is [anything|something] [printed|written] [on it|in <thepic>|here]?
Is there [anything|something] to read <here>?
Does <thepic> [contain|have|include|show] [any|some|] [text|writing|lettering]?
Did <they> write [anything|something] [on it|here|]?
[Has|Contains] text[?|: yes or no?]
Text [present|there|visible][?|]
Can [something|anything] be read [here|]?
Is it written something here
<claim> there is [some|] [text|writing] [here|in <thepic>|]<then> <right>?
Do I need my reading glasses, is there [any|] text [here|]?
Does [any|] [text|writing] appear [here|in <thepic>]?

this
Whats here
What thing is [here|there|at this place]?
What is [under my finger|under the cursor|where I clicked|where I point|at the marked spot|marked]?
What am I pointing at?
What did I [click on|touch|select|mark]?
[Name|Identify|Label|Classify] [the <thing>|what is] [here|at this point|in this box|in this region].
What does [this|the] [box|region|area|part|spot] [contain|show]?
<know> what [this is|is here|is at this point|is in this region]<end>
What's at these coordinates?
And this?
Which <thing> is [at this spot|here|in the box|there]?
What do you [find|see] [at this place|at this point|in this box|in this part]?
Tell me what this is.
<thing> here?
What have I [marked|selected|clicked|boxed]?
This one?

this colour
What <color> has [it|this]
<color> of [this|it|this thing|this one][?|]
<know> [what|which] <color> [this|it] [is|has]<end>
And [what|which] <color> is [this|it]?
[Name|Tell me] the <color> of [this|it|this one|the marked thing].
In [what|which] <color> is [this|it] [drawn|painted|shown]?
[What|Which] <color> has the [marked|selected] <thing>?

is empty
Is [it|<thepic>] completely [empty|blank]?
Is <thepic> just [background|an empty page]?
Is there nothing to see [here|in <thepic>]?
Did I send [you|] an empty [picture|image]?
<know> <whether> <thepic> is [empty|blank]<end>
Am I looking at [a blank|an empty] [page|picture|image|sheet]?
[Empty|Blank] [picture|image|pic|page]?
Is the [page|sheet|canvas] [empty|blank]?
It is [empty|blank], right?
<claim> <thepic> is [empty|blank]<then> <right>?
Would you call <thepic> empty?

is anything
Is there anything [at all|to see|visible|] <here>?
Can you see [anything|something] [at all|]?
Anything to see [here|there|]?
Anything [here|there|in it|in the pic|visible][?|]
<know> <whether> there is [anything|something] [in <thepic>|here|to see]<end>
Does <thepic> [show|contain|have] [anything|something] [at all|]?
Is [something|anything] [shown|visible|to be seen] [here|in <thepic>]?
Do you [recognize|notice|spot|find] anything [in <thepic>|here|]?
You see something?
""")
