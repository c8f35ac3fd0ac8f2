"""How people ask what stands above and below, and about tickets, signs and dishes: see `page_questions`."""

LINES = """
= lines
- below
What does it say [right|directly|] [under|below|beneath] {x}?
[What's|What is] [written|printed] [right|directly|] [under|below|beneath] {x}?
[What|Which line] [comes|stands|is] [right|directly|] [below|under] {x}?
Read [me|] the line [under|below|after] {x}.
The line [after|under] {x}, what does it say?
What does the line [below|under] {x} say?
- above
What does it say [right|directly|] [above|over] {x}?
[What's|What is] [written|printed] [right|directly|] [above|over] {x}?
[What|Which line] [comes|stands|is] [right|directly|] [above|before] {x}?
Read [me|] the line [above|before] {x}.
What does the line [above|before] {x} say?
- between
What [is|stands|is written|does it say] between {x} and {y}?
Which line is between {x} and {y}?
Read [me|] the line between {x} and {y}.
- below title
What does it say [right|directly|] [under|below] the [title|heading|headline]?
[What's|What is] [written|printed] [right|directly|] [under|below] the [title|heading|headline]?
[What's|What is] the first line [under|below|after] the [title|heading|headline]?
- title colour
[What|Which] color is the [title|heading|headline]?
In [what|which] color is the [title|heading] [written|printed]?
- paper colour
[What|Which] color is the [{p}|paper|sheet] [itself|]?
[What's|What is] the color of the {p}?
The text is printed on what color?
- ground colour
[What|Which] color is the background?
[What's|What is] the color of the background?
[What|Which] color is behind the text?
- letter
[With which|With what] letter does the [title|heading|headline] [begin|start]?
[What's|What is] the first letter of the [title|heading|headline]?
"""

CLAIMS = """
= claims
- day
Is [it|the {e}|this] on {c}?
Does [it|the {e}|this] take place on {c}?
{c}, is that the right day?
- ticket/day
Is [it|the ticket|this] for {c}?
Is [it|my ticket|the ticket] valid on {c}?
- time
Is it at {c}?
Does [it|the {e}|this] [start|begin] at {c}?
- ticket/time
Does it say {c}?
Is {c} the [right|] time?
- name
Is [it|this|the {p}] [for|meant for] {c}?
- host
Is [it|the invitation] from {c}?
Is {c} [the host|inviting us]?
- sender
Is [it|this|the card] from {c}?
Did {c} [write|send|sign] [it|this]?
- wearer
Is [this|that] {c}?
Is [the|his or her|this person's] name {c}?
- job
Is [he|she|this person] {an}?
Does [he|she|this person] work as {an}?
- price
Does it cost {c}?
Is it {c}?
Do I [have to|] pay {c}?
- gate
Is it gate {c}?
[Do I|Should I] go to gate {c}?
- platform
Is it platform {c}?
Does it leave from platform {c}?
- seat
Is my seat {c}?
Is it seat {c}?
- room
Is this room {c}?
Am I at room {c}?
- floor
Is it on floor {c}?
- coach
Is it coach {c}?
- row
Is it row {c}?
- screen
Is it screen {c}?
- flight
Is it flight {c}?
Am I on flight {c}?
- from
Does it [leave|start] from {c}?
Is it from {c}?
- to
Does it go to {c}?
Am I going to {c}?
Is it to {c}?
- town
Is it in {c}?
- age
Is {who} {c} [years old|now|]?
Does {who} turn {c}?
- phone
Is {c} the [number|phone number]?
[Should|Do] I call {c}?
- weight
Does it weigh {c}?
Is it {c}?
- origin
Is it from {c}?
Was it made in {c}?
- code
Is the [error code|code] {c}?
- back
Are they back at {c}?
= given
- phone
Is there a [phone number|telephone number] [on it|]?
Does it [say|give|have] a phone number?
Can I call them, is there a number?
- time
Does it say [at what time|what time]?
Is there a time on it?
Is the time [given|on it|printed]?
- day
Does it say [on which day|which day]?
Is the day [given|on it|printed]?
- price
Does it say [how much it costs|what it costs|the price]?
Is there a price on it?
= buttons
- left
[What|Which] [button|word] is on the left?
What does the left button say?
- right
[What|Which] [button|word] is on the right?
What does the right button say?
- top
[What|Which] button is [on top|above]?
What does the [upper|top] button say?
- bottom
[What|Which] button is [at the bottom|below]?
What does the [lower|bottom] button say?
= free
- free
Is [it|the entry|the {e}|admission] free?
- pay
Do I have to pay [anything|] [there|]?
Does it cost [anything|something]?
= sorts
- drinks
What could I drink?
[I'm thirsty|I am thirsty], [what can I have|what do they have]?
[Which|What] drinks [are there|do they have|are on the menu|can I order]?
What is there to drink?
- any drinks
Is there [anything|something] to drink?
Do they [have|serve|offer] [any|] drinks?
[I'm thirsty|I am thirsty], [can I order something|can they help me]?
- dishes
What could I eat?
[I'm hungry|I am hungry], [what can I have|what do they have]?
What is there to eat?
- any dishes
Is there [anything|something] to eat?
[I'm hungry|I am hungry], [can I order something|can they help me]?
Do they [have|serve] food?
- soups
[Which|What] soups [are there|do they have|can I order]?
[I'd like|I want] a soup. [Which ones|What] do they have?
- any soups
Is there [a|any] soup?
Do they have [any|a] soup?
- salads
[Which|What] salads [are there|do they have|can I order]?
- any salads
Is there [a|any] salad?
Do they have [any|a] salad?
- sweets
What [is there|do they have] for dessert?
[Which|What] desserts [are there|do they have]?
I [want|feel like] something sweet. What [can I have|do they have]?
- any sweets
Is there [a|any] dessert?
Do they have [anything sweet|a dessert|desserts]?
- fruits
[What|Which] fruit [is on the list|do I need|should I buy|do we need]?
- any fruits
Is there any fruit on [it|the list]?
[Do|Should] I [need|buy|get] [any|] fruit?
- vegetables
[What|Which] vegetables [are on the list|do I need|should I buy|do we need]?
- any vegetables
Are there [any|] vegetables on [it|the list]?
[Do|Should] I [need|buy|get] [any|] vegetables?
= offered
- both
Are both {x} and {y} on the {p}?
Does the {p} [list|mention|have] both {x} and {y}?
{x} and {y}, are both [listed|on it|there]?
- which
Which of these is on the {p}, {x} or {y}?
Which one is [listed|on it|mentioned], {x} or {y}?
Which do you [see|read] on the {p}, {x} or {y}?
- which not
Which of these is not [on the {p}|listed|on it]: {x}, {y} or {z}?
Which one is missing [on the {p}|], {x}, {y} or {z}?
= actions
- smoke
Can I [light|have] a cigarette here?
I need a cigarette. Is that OK here?
- bring my dog
I have a dog. Can [it|he|she] come [with me|in]?
Are dogs [allowed|OK|welcome] [here|]?
- park
Can I leave my car here?
Am I allowed to put my car here?
- swim
Can I go [swimming|for a swim] [here|]?
- take pictures
Can I use my camera [here|]?
Are [photos|pictures] allowed?
- eat
Can I have my sandwich [here|]?
- drink
Can I have a [coke|coffee|lemonade] here?
- go in
[May|Can] I enter?
Am I allowed [in|inside]?
- use my phone
Can I [call|phone] somebody here?
- make a fire
Can we [grill|have a barbecue|light a campfire] here?
- feed the animals
Can I give them [some bread|a snack]?
- camp
Can I [put up|pitch] my tent here?
- ride my bike
Can I cycle here?
I came by bike. May I ride it here?
- play soccer
Can we play with a ball here?
- wear a helmet
Do I need a helmet?
- wear a mask
Do I need a mask?
- wear gloves
Do I need gloves?
- take a shower
Do I need to shower [first|]?
- show my ID
Do I need my ID?
- pay
Do I have to pay [here|]?
- not be quiet
[Can|May] we be loud [here|]?
Is it OK to talk loudly [here|]?
- not take my shoes off
[Can|May] I keep my shoes on?
- not drive slowly
[Can|May] I drive fast [here|]?
- not close the gate
[Can|May] I leave the gate open?
- not close the door
[Can|May] I leave the door open?
- not switch off my phone
[Can|May] I leave my phone on?
"""
