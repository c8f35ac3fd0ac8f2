"""How people ask for what they often need, in training alone: which things, and whether any is there.

How it is written: `kestrel_tools.things.language.more.marks`, below a form of the trait that is asked for.
"""

from kestrel_tools.things.language.more.marks import wordings

WHICH = wordings("""
you eat
I [forgot|skipped] my lunch<then> what [here|] would [help|fill me up]?
What would you [choose|have|take] [here|] if you were hungry?
My stomach [growls|is empty]<then> [what here could help|which of these is for me]?
[What|Which of these] [belongs|goes] on a [plate|dinner plate|menu]?
[What|Which things] here [is|are] [food|eatable|something to eat|okay to eat]?
What could I [snack on|munch on|chew and swallow]?
[What|Which ones] would you put in your mouth?
[What's|What is] there [for a hungry person|for my empty stomach]?
[What|Which of these] would you buy in a [supermarket|grocery store] [for dinner|to eat]?

you drink
I'm so thirsty<then> what [here|] [helps|could I have|would you give me]?
[What|Which of these] would you sip?
What goes [well|] with a cookie, to drink?
What would a waiter [pour|bring] me to drink?
What [here|] [could|can] I [gulp down|swallow when my throat is dry]?

you wear
What should I [put on|wear] [today|tomorrow|tonight]?
[What|Which of these] would I [try on|wear]?
What [can be|is] worn [on the body|by people]?
[What|Which ones] would you [try on|wear]?

you wear ~ on your feet
What [keeps my feet warm|do I put on my feet|goes on my feet]?
My feet are cold<then> what [would help|could I wear]?
What do you walk in?

you wear ~ on your head
What do you put on your head?
What [goes|sits|belongs] on top of your head?

you sit on
Where [can|could|should] I [take a seat|sit down|rest my legs]?
My feet hurt<then> what [here|] could I sit on?
What do you offer a guest to sit on?
What stands at a table and has a backrest?
I'm tired of standing<then> what helps?

you lie down on
Where [can|could|should|would] I [sleep|take a nap|lie down|rest|spend the night] [here|]?
I'm [so|] tired<then> what [do I need|would help|could I use]?
What do you sleep in at night?

to cut paper = cutting paper
What [cuts|can cut|would cut] [paper|hair|fabric]?
What has two blades [that cross|]?
What do I use on [paper|a ribbon|my hair]?

is sharp
With what could [I|a child|you] get cut?
What should I not [touch|hold] by the blade?
What [here|] has a blade?

to make a note = making notes
What [would I|do you] write [a letter|my name|a list] with?
What [leaves|makes] marks on paper?
I have paper, but nothing to write with<then> what could I take?

to make music = making music
What [here|] could [be played in a band|I play a song on|an orchestra use|I learn to play]?
[Which|What] [is|are] for making music?
[What|Which of these] makes [a nice sound|music] when you play it?

to tell the time = telling the time
How [can|could] I find out what time it is<then> with what?
[What|Which one] [tells|shows] the [hour|time]?
I don't know how late it is<then> what [helps|should I look at]?

to take a photo = taking photos
How could I take a [photo|picture] [here|]<then> with what?
What [would|could] I [capture|remember] this moment with?

to call somebody = calling somebody
How could I reach my [mom|boss|family]<then> with what?
What do I need to [make a call|phone home|text a friend]?

to open a lock = opening locks
I'm standing in front of a locked door<then> what do I need?
What [opens|unlocks] [a|the] door?
What do you turn in a lock?

to stay dry in the rain = keeping dry in the rain
What [keeps|would keep] [me|you] dry [in the rain|]?
[It's pouring|Rain is coming|It may rain]<then> what [should I take|do I take along|do I open]?

gives light
What [here|] [shines|glows|gives light|makes it bright]?
[It's|It is] dark<then> what [brings|gives me] some light?

you ride
What could I [ride|get on and ride|ride home on]?

a vehicle
[What|Which of these] [gets|takes|brings] people from one place to another?
What [moves|transports] people or goods?
What could I travel [in|with|by]?

travels on water
What floats on the [water|sea|lake]?
I [want|need] to get to an island<then> what [takes me there|do I take]?

can fly
What [is able to|might] [fly|fly off|take off]?
What [goes|moves] through the air?
What could [be up in the air|leave the ground and fly]?

has wheels
What [here|] [rolls|runs|moves] on wheels?

an animal
What [here|] [breathes and moves|is an animal|has a heartbeat]?
Who [lives|is alive] here?

is alive
What [here|] is [living|alive|breathing]?
[What|Which] [is|are] not [an object|a thing], but a living creature?

a pet
[What|Which one] would you keep [at home as a pet|in the living room as a pet|as a pet]?
What could I adopt [from a shelter|as a pet]?

says meow
[Who|What|Which one] purrs?
What sits on the sofa and purrs?

barks
[Who|What|Which one] [would bark|barks at the mailman|might bark at strangers|says bow wow]?
[Who|What] goes for a walk on a leash?

gives us milk
Where does milk come from<then> which one [gives it|is it]?
[Who|What|Which one] would a farmer milk?

lives in the sea
[Who|What|Which of these] [lives|swims|is at home] [in the ocean|in the deep sea|under the waves]?
What would a diver [see|meet]?

a fruit
What [fruit|fruits] could I [buy|eat|pick]?
What could I put into a fruit bowl?

a vegetable
What [is|do you see] from the vegetable [garden|patch|stand]?
What would you find among the vegetables [at the market|in the store]?

tastes sweet
What [would|could] [a child|a sweet tooth] [love to eat|like to eat]?
What [here|] is sweet?

a dessert
What [is|would be] [there|good] for dessert?
What do you [serve|eat] after the main course?

is dangerous
What should [a child|kids|children] [stay away from|not go near|never touch]?
What [here|] could [hurt|harm|kill] [me|you|somebody]?
What would you be afraid of?

you read
What could I [read|take along to read|read in bed]?

is used in sports
What [do you use|is used] [in|for] sports?
What would I need for sports?

a piece of furniture = pieces of furniture
What would you buy in a furniture store?
What [stands|is] in a furnished room?

belongs in a toolbox
What would I [repair|fix] something with?
What does a handyman [use|carry|need]?
I have to [fix|repair|build] something<then> what [do I take|can I use]?

is used to fry things
What [could|would|do] I [cook|fry] [my dinner|an egg|] in?
What do you put on the stove?

a flower
What could I [give|bring] [my mother|my wife|a lady] from the garden?
What [here|] [blooms|is blooming|is in bloom]?

keeps you warm
I'm freezing<then> what [helps|would help|could warm me]?
What [gives|gives off] [heat|warmth]?

you see ~ in the sky
What would I see if I looked up [at the sky|outside]?
What [here|] is in the sky?

has a screen
What [here|] has a [display|screen]?
What could I stare at all day because it has a screen?

runs on electricity
What [here|] needs [power|electricity|current]?

you drink from
What [would|do|could] you drink your [tea|coffee|cocoa] from?

you unwrap
What [do|can] I [open|unwrap] on my birthday?
""")
WHETHER = wordings("""
you eat
[Is|Is there] [anything|something] [here|] [edible|eatable|to eat|for a hungry person]?
[Could|Can] I eat any of [this|these|it]?

you drink
Could I [drink|sip] [anything|something] here?

you wear
Is [anything|something] here wearable?

you sit on
Could I [sit down|take a seat] [anywhere|on something] [here|]?
Is there a seat [here|]?

you lie down on
[Could|Can] I sleep [anywhere|in something] [here|]?

an animal
Is [anything|something] [here|] an animal?

is dangerous
Is there [anything|something] [here|] a child should not touch because it is dangerous?

to make music = making music
Could [a band|a musician] use [anything|something] here?

a vehicle
Could [people|somebody|one] travel [in|with] [anything|something] [here|]?
""")
