"""What people write around a question: greetings, reasons, thanks, and how short the answer is to be."""

from .marks import wordings

FRAMES = wordings("""
before
[Hi|Hello|Hey|Hiya|Good day|Dear assistant|Hey there|Hi again][!|,|.|]
[Hello|Hi], [I'm new here|first time here|nice tool|I hope you are well|long day today][.|!|,]
[Mom|Dad|Grandpa|My boss|My teacher|The client] [sent|gave|showed] me this[.|,]
[My|Our] <kid> [drew|painted|made] this [at school|yesterday|for me|with crayons|][.|,|!]
[I|We] [found|saw] this [in a book|on the internet|on a wall|in a magazine|in the attic][.|,]
[I'm|I am] [seven|eight|only six|old|75|half blind|color blind|not a native speaker][.|,| and|:]
[Sorry for my English|Sorry, bad english|English is not my language|I write from my phone][.|,|:|...]
[Ok so|Okay|So|Well|Right|Alright|Now|And|Oh|Um|Hmm|Wait|Listen|Look][,|...|:|]
[Next|Next one|Next question|Another one|One more|Last one|Number two][:|.|,| -]
[Question|Q|Task|Test|Prompt|Query|User]:
[This is a test|Just testing|Testing|API test|Checking the demo|Let's see if this works][.|:|,]
[I have|We have|Here is] a [riddle|quiz|puzzle|challenge|tricky one|simple one] for you[.|:|!]
[I'm|I am] [preparing a lesson|making a quiz|writing a report|playing with my <kid>|doing my homework][.|,|:]
[We are|I am] [having an argument|not sure|confused|lost|a bit slow today|curious][.|,|:]
[I|We] [need|could use] your [help|eyes|opinion] [with this|here|for a second|][.|:|,]
[Quick one|A quick one|Real quick|Simple question|Easy one|Serious question|Dumb question|Silly one][:|,|.]
[Without guessing|Think carefully|Look carefully|Look closely|Concentrate|Take your time|Be honest][:|,|.]
[Can you|Could you|Would you] [help me|help|do me a favor|have a look|take a look][?|,|.]
[If you don't mind|If it isn't too much trouble|If you have a moment|When you have time|If possible],
[I hope this isn't a stupid question|Forgive the question|Don't laugh|Don't get me wrong][, but|:|.]
[My screen is broken|My screen is tiny|The picture is blurry on my side|It's too small for me][.|, so|:]
[You are|You're] [a helpful assistant|my eyes|the expert|so smart|very good at this][.|:|,]
[In this|In the|In my|About this|About the|Regarding this|For this] [picture|image|drawing|photo][,|:]
[Yesterday you were wrong|Last time you were right|I asked you before|You didn't answer me][.|, so|:]
[We are|The family is|The kids are] [on a train|at the doctor|in class|having lunch|bored][.|,| and|:]
[It's raining|It's Monday|Coffee first|Good coffee today|I just woke up|I can't sleep][.|,|...|:]
[The teacher|My <kid>|The instructions|The exercise|The quiz] [asks|says|wants to know][:|,]
[Somebody|Someone|A colleague|A stranger] [told|asked] me about this [picture|image|drawing][.|,|:]
[Please|Pls|Plz|Kindly|Be so kind][,|:|]

asking
[Can|Could|Would] [u|you] [pls|please|quickly|just|] [tell me|say|explain|let me know][,|:|]
[I'd love to know|I would love to know|I really want to know|I need to find out][,|:|]
[Remind me|Help me understand|Let us know|Do tell][,|:]
[Have you any idea|Any clue|Any guess|Got any idea|Can you work out|Would you know]
[I keep asking myself|I ask myself|I always wondered|We were all wondering|Everyone asks]
[May I ask|Might I ask|Can I ask you|Let me ask you][,|:|]
[What I want to know is|My question is|The question is|What I mean is|Here is what I want to know][:|,|]

after
[Thanks|Thank you|Thx|Ty|Cheers|Many thanks|Thank you very much][!|.|]
[Please|Pls|Plz] [hurry|help|answer|be quick|be exact|try|][!|.|]
[I don't want|dont want|I do not want] my [kid|son|daughter] to [grab|touch|see|eat] it[.|]
[I need it for|It's for|This is for] [school|work|a bet|my blog|a game|my grandma|a quiz|a friend][.|]
[Asking for a friend|Just wondering|Just curious|No hurry|No rush|It's urgent|Its important][.|!|]
[I|We] [can't|cannot] [see it properly|find it|tell|make it out|do it alone]...
[My eyes are bad|My screen is dark|I lost my glasses|I have no glasses on|I'm in the sun][.|]
[I hope|Hope] [you can help|that's clear|this makes sense|you understand|it is not too hard][.|]
[Because|cause|since] [we|my <kid> and I|my wife and I] [disagree|have a bet|can't agree][.|]
[Think|Look|Check] [twice|again|carefully|closely|before you answer][.|!|]
[What do you think|Do you know|Can you tell|Can you see that|Can you help|Any idea|You know][?|]
[lol|haha|hmm|idk|ok|:)|xD|smh|tbh|asap|btw|right now][.|]
[I asked|We asked] [my <kid>|someone else|another bot] [already|before|too][.|]
[Don't guess|Dont lie|No guessing|Don't make things up|Only if you are sure][.|!|]
[Sorry|Excuse] [for asking|for the stupid question|my English|the bother|me][.|]
[You have one try|Last chance|I'm counting on you|I trust you|Good luck|Have fun][.|!|]

yes or no
[Yes or no|Y or n|y/n|yes/no|Just yes or no][?|.|]
[Answer|Reply|Respond] [only|] with yes or no[.| please.|]
[A simple|A plain|A] yes or no [is enough|will do|is fine][.|]
[Only say|Just say|Simply say|Say] yes or no[.|]

number
[Just|Only] [the|a] number[.|, please.| please|]
[Answer|Reply|Respond] [only|] with [a|the] number[.|]
[A|The] number [is enough|will do|is all I need][.|]
[Numbers only|Digits only|In digits|As a number][.| please.|]

short
[Just|Only] the answer[.|, please.| please|]
[Keep it short|Short answer|Be brief|Short and simple|In short][.|, please.| pls|]
[No|Without] [explanation|explanations|long story|full sentence|details] [needed|please|][.|]
[Answer|Reply|Respond] [briefly|in short|shortly|with as few words as possible][.|]
""")
