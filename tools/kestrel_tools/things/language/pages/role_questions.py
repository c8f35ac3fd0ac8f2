"""How people ask about invitations, cards, tickets, messages and signs: see `page_questions`.

Each section is what a line tells; KIND/WHAT is asked of one kind of page instead.
"""

ROLES = """
= roles
- name
Who is [it|this|the {p}] for?
Who is [this|the {p}] [meant for|for|addressed to]?
For whom is [this|the {p}] [meant|]?
[What|Which] name [is|stands|do you see] on [it|the {p}]?
Who [gets|should get|will get] [this|the {p}]?
Whose {p} is this?
Tell me whose name [is on it|it has].
- invitation/name
Who is the party for?
Whose [party|celebration] is it?
Who [is celebrating|is being celebrated|has something to celebrate|is it all about]?
For whom do I [need|have to buy|buy] a present?
Who do I [need|buy] a present for?
We [got|received] an invitation. Who's it for?
- birthday
Whose birthday is it?
Who [has|is having] [a birthday|their birthday]?
Who [turns a year older|is the birthday child]?
For whom do I [have to|] sing happy birthday?
Whose birthday are we [celebrating|going to]?
- notice/name
[What's|What is] [the animal|the pet|it] called?
[What's|What is] the name of the [lost|missing|] [animal|pet]?
What name does [it|the animal] listen to?
- age
How old is [the birthday child|{who}] [now|]?
How old will [the birthday child|{who}] be?
[What|Which] age does {who} [turn|reach]?
How many candles [do we need|must be on the cake]?
How many years old is {who}?
{who} turns how old?
- host
Who [invites|is inviting|invited|is the host|sent the invitation|gives the party|throws the party]?
Who is [the invitation|it] from?
From whom is [the invitation|it]?
Whose guest [am I|will I be]?
- couple
Who [is getting married|gets married|marries|are the couple]?
[What are|Tell me] the names of the [couple|bride and groom]?
Whose wedding is it?
- names
[What|Which] names [are on it|do you see|are printed|are there]?
Who is named [on it|on the invitation|]?
- sender
Who is [it|this|the card] from?
Who [sent|wrote|signed] [it|this|the card]?
From whom [is|did I get] [this|the card]?
Who [is wishing me that|do I have to thank]?
- day
When is [it|the {e}|this]?
[On which day|On what day|What day] is [it|the {e}|this]?
When does [it|the {e}|this] [take place|happen]?
[On which date|What date] does [it|the {e}|this] [take place|happen]?
[What's|What is] the [date|day] [of the {e}|on it|]?
[Which|What] day [should I|do I have to|must we] [come|be there|keep free]?
I have to put it in my calendar. [What|Which] day is it?
Which [day|date] does it say?
- ticket/day
[What|Which] [day|date] is the ticket for?
When is [it|my ticket|the ticket] valid?
On which day is [it|my ticket|the ticket] valid?
[What's|What is] the date [on it|on the ticket|]?
[On which day|On what day] do I [go|travel|have to be there]?
- time
When does [it|the {e}|this] [start|begin]?
[What time|At what time] does [it|the {e}|this] [start|begin]?
[What time|At what time] [is it|should I be there|do I have to come|do we have to be there]?
[What's|What is] the [time|starting time]?
[I don't want to be late|We want to be on time][.|:] [what time|at what time] is it?
[What|Which] time [does it say|is printed|is written there]?
- ticket/time
When do I have to be there?
[What time|At what time] [do I have to be there|does it start|does it leave|is it]?
[What's|What is] the time [on it|on the ticket|]?
[What|Which] time [does it say|is printed]?
- place
Where is [it|the {e}] [held|]?
Where will [it|the {e}] [be|take place]?
[Where|To which place] [should I|do I have to|do we have to|must I] [go|come]?
[What's|What is] the [place|venue|location]?
Where does [it|the {e}|this] [take place|happen]?
I'm calling a taxi. Where [do I want to go|is it]?
In [which|what] place is it?
- address
[What's|What is] the [address|street|street address]?
[Which|What] [street|address] is it [in|]?
[On which|In which] street [is it|are they|do they live]?
[Where|To which address] [should I|do I] [go|send it|deliver it]?
Read me the [address|street and number].
- town
[In which|In what|Which] [city|town] is it?
[What|Which] [city|town] [are they in|is it in|is that|does it say]?
[Which|What] [town|city] is [printed|named|on it]?
- phone
[What|Which] number [should|can|do|must] I call?
[What's|What is] the [phone number|telephone number|number|tel]?
[How can I|How do I] [reach|call|contact] them?
[Give|Read|Tell] me the [phone number|number to call].
I want to [call|ring|phone] them. [What do I dial|What's the number]?
Which phone number is [printed|given|on it]?
phone number?
- price
How much [is it|does it cost|do I have to pay|is the entry|is a ticket]?
[What's|What is] the [price|cost]?
What does it cost?
How [expensive|much money] is it?
[What|Which] price [does it say|is printed|is on it]?
How many dollars [is it|do I need|will it cost]?
- notice/price
How much [do they want|is it|does it cost|do they ask for it]?
For how much is it [sold|offered]?
[What's|What is] the [price|asking price]?
- label/price
How much [is it|does it cost|does the {e} cost]?
[What's|What is] the price [of the {e}|]?
- ticket/price
How much [is|was] the ticket?
[What's|What is] the price [of the ticket|]?
What did the ticket cost?
How much did [I|he|she|you] pay [for it|for the ticket|]?
- reward
[What's|What is|How much is|How high is] the reward?
How much [do I get|money do I get|is there] if I find it?
What do they [pay|give] [for it|to the finder]?
- object
What [is|was|got] lost?
What [are they looking for|is missing|did somebody lose]?
What is the [note|notice] about?
- found/object
What was found?
What did [they|somebody] find?
What is the [note|notice] about?
- for sale/object
What is [for sale|being sold|sold here]?
What [can I buy|do they sell|are they selling]?
- wanted/object
What [is wanted|do they want|are they looking for]?
What does somebody want?
- from
Where does the [trip|journey] [start|begin]?
[From where|From which city|Where] does it [leave|depart|start] [from|]?
[Which|What] city [do I leave from|is it from]?
Where do I get on?
- to
Where [does it go|does the trip go|am I going|do I travel] [to|]?
[What's|What is] the destination?
[Which|What] city [is it to|do I go to|will I arrive in]?
Where do I get off?
- holder
Whose ticket is it?
Who owns this ticket?
[Which|What] name is on the ticket?
Who is the [passenger|ticket for]?
- seat
[What's|Which is|What is] my seat?
[Which|What] seat [do I have|is it|is mine|number is it]?
Where do I [sit|have to sit]? [Which seat|What seat]?
[What's|What is] the seat number?
I found the row. Which seat is mine?
- row
[Which|What|In which|In what] row [do I sit|is it|am I] [in|]?
[What's|What is] the row [number|]?
row?
- gate
[Which|What] gate [is it|do I need|do I go to|does it leave from]?
[What's|What is] the gate [number|]?
Where do I board? [Which gate|What gate]?
- coach
[Which|What|In which] coach [is it|do I sit in|am I in]?
[What's|What is] the coach number?
Where do I get in? [Which coach|What coach]?
- platform
[Which|What|From which] platform [is it|does it leave from|do I need]?
[What's|What is] the platform [number|]?
- screen
[Which|What|On which] screen [is it|do I need|is the movie on]?
[What's|What is] the screen number?
- flight
[What's|What is|Which is] the flight number?
[Which|What] flight [is it|do I take|am I on]?
- room
[What|Which] room [is it|is this|number is it|am I at]?
[What's|What is] the room number?
[In which|In what] room [is it|is that|are they]?
Is this the right door? Which room [is it|number does it say]?
[What|Which] number [is on|does it say on] the door?
- floor
[Which|What|On which|On what] floor is it [on|]?
[What's|What is] the floor [number|]?
- occupant
Whose [office|room|door] is [this|it]?
Who [works|sits|is] [here|in there|behind this door]?
[What|Which] name is on the door?
Who [can I find|do I find] in this room?
- wearer
[What's|What is] [his or her|her|his|their|the person's] name?
Who is [this|it|that|she|he]?
[What|Which] name is [on the tag|on it|printed]?
[How should I address|What do I call] this person?
I forgot who I'm talking to. What's the name?
- job
[What's|What is] [his or her|her|his|their|the person's] [job|profession|position]?
What does [he|she|the person|this person] do [for a living|for work|]?
[What|Which] [job|profession] [does it say|is printed|is on it]?
- message
What [went wrong|is wrong|is the problem|happened|is the matter]?
[What's|What is] the [error|problem|trouble|error message]?
Why [doesn't it work|is it not working|does it not work]?
What does the [error|message|error message] say?
[My screen shows this|This popped up|My computer shows this][.|,] what's the problem?
- code
[What's|What is] the [error code|code]?
[Which|What] code [is it|does it show|do I tell support]?
Support wants the code. What is it?
- button
What does the button say?
[What|Which] [button|word] can I [press|click|tap|push]?
[What's|What is] [written|printed] on the button?
What do I have to [press|click|tap]?
- buttons
[What|Which] buttons are there?
What can I [press|click|choose|tap]?
[What|Which] [choices|options|buttons] do I have?
[List|Name] [all|] the buttons.
What do the buttons say?
- number of buttons
How many buttons [are there|do you see|can I press|does it have]?
Count the buttons.
- has button
Is there a button [that says|for|called|with|named] {x}?
Can I [press|click] {x}?
Do you see a {x} button?
- press
What do I [press|click|tap|have to press] to {x}?
[Which|What] button [do I press|should I press|is it] to {x}?
I want to {x}. What do I [click|press|tap]?
How do I {x}? [Which button|What do I press]?
- asks
What does it ask [me|]?
[What's|What is] the question?
What does the [program|computer|phone] want to know?
- weight
How much does it weigh?
How [heavy is it|much is in it|much is in the package]?
[What's|What is] the [weight|net weight]?
[What|Which] weight [does it say|is printed|is given]?
How much {e} is in [it|there|the pack]?
- until
[Until when|How long] [is it good|can I eat it|does it keep]?
[What's|What is] the best before date?
When does it [expire|go bad]?
- origin
Where [was it made|does it come from|is it from]?
[Which|What] country [is it from|does it come from]?
In which country was it made?
- product
What [is in it|product is it|is in the package|is it]?
What is the product called?
- event
What [event|kind of event] is it?
What [is the poster about|is it for|is it about|is going on|is being advertised|takes place]?
What can I [go to|visit] [there|]?
- firm
Whose card is it?
Who does this card belong to?
[What|Which] name is on [it|the card]?
- site
[What's|What is] the [website|web address|internet address]?
[Which|What] website [is it|should I visit|do they have]?
- hazard
What does it warn [of|about|me of]?
What does the warning say?
What [should|must] I [watch out for|be careful about|look out for]?
What is the [danger|warning|sign about]?
- back
When [will they be|are they|do they come] back?
[When|At what time] [do they open again|can I come back]?
How long do I have to wait? [Until when|When do they return]?
- bring
What [should I|must I|do I have to] bring [along|]?
[What|Which things] do [I|we] need to take [along|with us]?
Do I have to bring something? What?
What are the guests asked to bring?
- may
[May|Can] I {x} [here|there|]?
[Am I|Are we] allowed to {x}[| here]?
Is it [OK|okay|allowed|fine] to {x}[| here]?
- may not
Is it [forbidden|prohibited] to {x}[| here]?
Is there a rule against it if I want to {x}?
- must
[Do I have to|Must I|Should I] {x} [here|]?
Is it required to {x}?
Am I supposed to {x}?
- forbidden
What is [not allowed|forbidden|prohibited] [here|]?
What does [it|the sign] forbid?
What [don't they want|do they not allow] [here|]?
- nth rule
[What's|What is] the {k} rule?
[Read|Tell] me the {k} rule.
What does rule number {j} say?
- number of rules
How many rules [are there|are listed|do I have to follow]?
Count the rules.
- open
[Are they|Is it|Is the place|Is the shop] open?
Can I [go in|come in|shop here]?
- closed
[Are they|Is it|Is the place|Is the shop] closed?
- open or closed
[Are they|Is it] open or closed?
Open or closed?
- push or pull
[Do I|Should I|Must I] push or pull?
How do I open the door, push or pull?
Push or pull?
- vacant
Is [it|the toilet|the room] [free|vacant|available]?
Can I [go in|use it]?
- taken
Is [it|the toilet|the room] [occupied|taken]?
Is [somebody|someone] in there?
- broken
Is it broken?
Is it out of order?
- sold out
[Is it|Are they] sold out?
Are all tickets [gone|sold]?
- must push
Do I have to push?
Should I push [it|the door|]?
- must pull
Do I have to pull?
Should I pull [it|the door|]?
- works
Does it work?
Can I use it?
Is it working?
- tickets left
Are there [any|] tickets left?
Can I still [get|buy] a ticket?
- occasion
What is the [occasion|card about]?
What does the card wish [me|them|]?
What's the [message|greeting]?
"""
