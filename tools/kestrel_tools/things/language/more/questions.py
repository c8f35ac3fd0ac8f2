"""More ways to ask what is there, and how many."""

from .marks import wordings

MORE = wordings("""
describe
Whats in <thepic>
What am I looking at [here|]?
What is there to see [here|in <thepic>]?
Tell me [about|what is in|what's on|everything in] <thepic>[.|]
[Give me|Write|I need|Generate] a [short|brief|quick|simple] [description|caption] of <thepic>[.|]
[Alt text|Caption|Description|Summary] <please>
[Give me|Write|I need] alt text for <thepic>.
[I'm|I am] blind[.|,] [what is|what's|please tell me what is] in <thepic>?
I can't see [it|the screen|<thepic>], [describe it to me|what does it show|what is on it]<end>
What did <they> [draw|paint|make] [here|]?
[Somebody|A friend|My aunt|Grandma] sent me this<then> What does it show?
[In a few words|In short|Briefly|In one sentence], what is [in|on] <thepic>?
What [would you say|do you think] <thepic> shows?
What can be [seen|made out|recognized] [here|in <thepic>]?
What [can you|do you] [make out|recognize|notice|find] [here|in <thepic>]?
[Say|Explain|Report|Write down] what you see [here|in <thepic>|].
What things is in picture
Picture show what?
What have we here?
[I would|I'd] be [grateful|glad|happy] if you [described|could describe] <thepic> [to me|]<end>
Would you be so kind as to [describe <thepic>|tell me what can be seen in <thepic>]?
[Look at|Have a look at] <thepic><then> What do you see?
[What's|What is] the [content|subject] of <thepic>?
[Content|Contents] of [image|picture][?|]
What [does|do] [picture|image|this] [have|has]
What [u|you] see [here|in this|]
[Explain|Describe] this [to me|like I am five|for a blind person|].
<know> what <thepic> [shows|is about|has in it]<end>
[Hey|So|OK], what's [going on|happening|shown] in <thepic>?
What would a person see [here|in <thepic>]?
[My <kid> asks|We all wonder] what this <pic> [is|shows].

this one
Whats this
What this [is|]
[What's|What is] this [thing|] [called|supposed to be|meant to be]?
[Any idea|Do you know|Can you guess|Guess] what this [is|could be|might be|is supposed to be]<end>
I have no idea what this is<then> [Do you|What is it|Help me]<end>
My <kid> [drew|made|painted|found] this<then> What is it [supposed to be|]?
What did <they> draw [here|]?
What have [we|you|I] got here?
[Identify|Recognize|Label|Classify] [this|it|the object|the thing] <please>
Name of this <thing>[?|]
[What's|What is] the name of [this <thing>|that]?
What [would you|do you|do people|do we] call [this|that|this thing|such a thing]?
What is [the|that] <thing> [in|on] <thepic>?
What thing this is
<know> what this [is|thing is|object is]<end>
[Say|Tell me] what it is.
What did I [just|] [find|upload|draw|send you]?
This is [what|a what|called what]?
One <thing> is [drawn|shown] here<then> [Which one|What is it]?
Look! What's that?
What are we looking at?
[Object|Thing][?| name?]
It's [a mystery|not clear] to me<then> What is [this|it]?
The <thing> [here|in <thepic>], what is it?
If you had to name this [in one word|], what would you say?

list
Which {} can [u|you] [find|see|name] [here|in <thepic>|]
Go through the {} from left to right[.|, please.]
From left to right, what are the {}?
From left to right, name [all the|the] {}.
I [need|want|would like] [a list of|the names of] [all the|the] {} [here|in <thepic>|]<end>
[Could|Would] you [please|kindly|] [name|list] [all the|all of the|the] {} [you can see|in <thepic>|for me]?
The {}: [what are they|which are they|name them|list them]
Names of [the|all|] {} <please>
What {} has <thepic> got?
What {} did <they> draw [here|]?
List {} <please>
{} list <please>
All {}, [comma separated|separated by commas|one by one] <please>
[Give|Send] me [all|] the {} [as a list|separated by commas|one by one|one after the other].
What sort of {} [are|is] <here>?
I'm making [an inventory|a list|notes]<then> [What|Which] {} [are there|do you see]?
Which are {} in [picture|image]
What {} you see
Say me the names of all {}
How are the {} called?
Please write down [all the|the|every one of the] {}.
What {} can be [found|seen|spotted|made out] [here|in <thepic>]?
<know> [what|which] {} [there are|you see|are shown|are in <thepic>]<end>
Let's play a game<then> name [all the|the] {} [here|in <thepic>].
[I can't see well|I'm blind]<then> [what|which] {} are <here>?
Start on the left and name [all|] the {}.
{}, [which ones|what are they called|all of them please][?|]

count
How much {} [is|are] [here|there|in picture|on picture]
Count {} [pls|please|for me|now|]
Count [every one of|each of|] the {}[.|]
{} count[?|]
[Total|No of|Nr of|# of|Amount of|Quantity of|Total of] {} [here|please|pls|]
How many {} [u|you] [see|got|found|can find]
<know> how many {} [there are|you see|are shown|<thepic> has|are in <thepic>|you count]<end>
[Let's|Let us] count the {}<then> How many [are there|do you get|do we have]?
I counted the {} and [lost track|got confused|am not sure]<then> How many [are there|is it|do you get]?
If you [count|counted|add up] [all|] the {}, [what do you get|how many is that|what is the total]?
How many {} would you say [are there|are in <thepic>|there are]?
How many {} did <they> [draw|paint|put in] [here|]?
How many {} [are drawn|can be seen|can you find|appear|are present|have been drawn] [here|in <thepic>|]?
[What|Which] number of {} [do you see|does <thepic> show|is there]?
[Give me|I need|Tell me|Report|Return] the [exact|] [number|count|total] of {} [in <thepic>|here|]<end>
[All in all|Altogether|In total|In all|Overall], how many {} [are there|do you see|can you count]?
How many {} are there, if any?
The number of {} is [what|...][?|]
Can you count the {} with me?
Count the {} [for mommy|for daddy|for grandma|for us|with me][!|.|]
Are there many {}? How many exactly?
There should be some {}<then> [How many|How many are there|Count them]<end>
[Could|Would] you [do me a favor and|please|kindly|quickly] count the {} [in <thepic>|for me|]?
[For my report|For the record|For my homework|For the inventory], how many {} [are there|do you see]?
How many of {} there [is|are]
{}, how many?
{} - how many [are there|]?
The {}, how many of them [are there|do you see|can you find]?
How many {} does that make [in all|altogether|]?
How many {} [are we talking about|have we got|do we have] [here|]?
What do you get when you count the {}?
I want [you|] to count [all the|the] {}.
[I'm|I am] counting {}<then> how many do you [see|get|find]?

presence
[Any|Got any] {:bare} <here>[?|]
{:bare}[?| yes or no?| here?| in it?| there?]
Is there [any|] {:bare} [or not|or no|yes or no]
<know> <whether> there is {} <here><end>
[Check|Verify|Find out|See|Tell me] <whether> [you can see|you can find|it has|<thepic> contains] {}[.|]
<claim> there is {} [here|in <thepic>|]<then> <right>?
<claim> [you can see|it shows|<thepic> shows|<thepic> has] {}<then> <right>?
There [must|should|might] be {} [somewhere|in here|in <thepic>]<then> [Is there|Do you see it|Is that so]?
[I'm|I am] [looking|searching] for {}<then> [Is there any here|Do you see any|Is there any in <thepic>]?
Would you [find|see|spot|say there is] {} <here>?
Does {} [appear|show up|occur|exist] [here|in <thepic>|anywhere|]?
Did <they> put {} [in|in there|somewhere]?
Is it [true|correct|right|the case] that there is {} [here|in <thepic>|]?
Is it [true|correct|right] that <thepic> [shows|contains|has] {}?
[Can|Could] [you|I|one|we] [spot|find|make out|detect|recognize] {} [anywhere|somewhere|here|in <thepic>|]?
Have you [spotted|seen|found|noticed] {} [here|in <thepic>|anywhere|]?
Did you [spot|see|notice|find] {} [here|]?
Is {} <here>[?|]
Is here {}?
There is {} [here|in picture|on picture|in image]?
[Have|Picture has|It have|Image have] {}?
You see {} [there|or no|or not]?
Does this [pic|picture|one] got {} [in it|]?
[Mommy|Daddy|Grandma|Teacher], is there {}?
Is {} [hiding|hidden] [somewhere|] [here|in there|in <thepic>]?
[Would|Could] you [please|kindly|be so kind as to] [check|tell me|confirm] <whether> there is {} <here>?
I [would like|need|have] to [find out|make sure|check] <whether> <thepic> [shows|contains|includes|has] {}.
Yes or no: is there {} [here|in <thepic>|]?
[Contains|Has|Shows|Includes] {:bare}[?|: yes or no?]
I see {}, [don't I|right|correct]?
You [see|can see] {}, [don't you|can't you|right]?
This [picture|image] [has|shows|contains] {}, [doesn't it|right|correct|yes]?
We have {} here, [don't we|right]?
Is [one of the things|something|one of these] [here|in <thepic>|] {}?
Did <they> [draw|include|paint] {}?
Among [all|] the things [here|in <thepic>], is there {}?

presence any
Any {} [in here|in there|around|at all|in this one|in the pic|on it][?|]
Got [any|] {} [in there|in it|here|][?|]
[Have you|You] got any {} [there|here|]?
Are {} [here|in it|in here|in picture|on picture|there]
<know> <whether> there are any {} <here><end>
[Check|Verify|Find out|Tell me] <whether> [you see|there are|<thepic> has|you can find] any {}[.|]
I [can't|cannot|don't] see any {}<then> [Can you|Do you|Are there any]?
I [love|like|hate|collect|am afraid of] {}<then> [Are there any|Do you see any|Any here]?
My <kid> [loves|likes|is afraid of|draws only] {}<then> Are there any <here>?
[I'm|I am] looking for {}<then> [Are there any|Do you see any|Found any]?
Does <thepic> [include|feature|depict|happen to have|contain] any {}?
{} [present|visible|there|here][?| yes or no?]
[Can|Could] [one|I|you|we] [find|spot|make out|detect] any {} [here|in <thepic>|]?
Have you [seen|spotted|noticed|found] any {} [here|in <thepic>|]?
Did <they> [draw|paint|include] any {}?
It has {}?
There is {} in [picture|image]?
Would you say there are any {} <here>?
Do any {} [appear|show up] [here|in <thepic>|]?
Will I [find|see] any {} <here>?
Are any of the things [here|in <thepic>] {}?
Yes or no: any {} <here>?
I need {} for a [game|story|collage|report]<then> [are there|do you see] any?
[No|Not] sure about this<then> are there any {}?

presence or
<know> <whether> there is {} or {} [here|or both|]<end>
Is at least one of these <here>: {}, {}?
Any {:bare} or {:bare} <here>?
Does <thepic> [show|contain|have|include] {} or {} [or both|]?
[Check|Find out] <whether> you [see|find] {} or {}.
Is either {} or {} <here>?
[Can|Could] you [find|spot|detect] {} or {} [anywhere|here|]?
Have you [seen|spotted|found] {} or {} [anywhere|here|]?
[I'm|I am] looking for {} or {}<then> Is there any [here|]?
Did <they> draw {} or {}? Yes or no?

presence and
Are {} and {} both <here>?
Do {} and {} [both|] appear [here|in <thepic>]?
<know> <whether> there are both {} and {} [here|in <thepic>|]<end>
Does <thepic> [have|show|contain|include] both {} and {}?
[Can|Could] you [find|see|spot] both {} and {} [here|]?
<claim> there are {} and {} [here|]<then> <right>?
{:bare} and {:bare}, both [here|there][?|]
Is there {} as well as {} [here|]?
[Did|Have] you [find|found] both, {} and {}?
Did <they> draw {} and [also|] {}?
I see {} and {}, [right|don't I|correct]?
""")
