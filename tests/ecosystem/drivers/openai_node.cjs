// OpenAI's own client for Node: `openai_node.cjs ADDRESS PICTURE`. The same questions as openai_python.py.
const { readFileSync } = require('fs');
const { OpenAI } = require('openai');

const [address, path] = process.argv.slice(2);
const URL = `data:image/png;base64,${readFileSync(path).toString('base64')}`;
const QUESTION = 'How many circles are there?';
const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: 'none', maxRetries: 0 });

function chat({ text = QUESTION, url = URL, ...more } = {}) {
  const picture = { type: 'image_url', image_url: { url, detail: 'auto' } };
  const messages = [{ role: 'user', content: [picture, { type: 'text', text }] }];
  return client.chat.completions.create({ model: 'moondream', messages, temperature: 0, ...more });
}

function response(more = {}) {
  const content = [{ type: 'input_image', image_url: URL, detail: 'auto' }, { type: 'input_text', text: QUESTION }];
  return client.responses.create({ model: 'moondream', input: [{ role: 'user', content }], temperature: 0, ...more });
}

async function all(stream) {
  const pieces = [];
  for await (const piece of await stream) pieces.push(piece);
  return pieces;
}

async function refusal(call) {
  try {
    await call;
  } catch (error) {
    const { status, code, param, message } = error;
    return { error: error.constructor.name, status, code, param, message };
  }
  return { error: null };
}

async function main() {
  const models = await all(client.models.list());
  const whole = await response();
  const events = await all(response({ stream: true }));
  const completion = { model: 'moondream', prompt: QUESTION, max_tokens: 16 };
  const tool = { type: 'function', function: { name: 'f', parameters: {} } };
  return {
    chat: await chat(),
    thinking: await chat({ reasoning: true }),
    async: (await Promise.all([chat(), chat()])).map((answer) => answer.choices[0].message.content),
    logprobs: await chat({ logprobs: true, top_logprobs: 2 }),
    stopped: await chat({ text: 'Describe the picture.', stop: ['circle'] }),
    stream: await all(chat({ text: 'Describe the picture.', stream: true })),
    stream_usage: await all(chat({ stream: true, stream_options: { include_usage: true } })),
    detect: await chat({ text: '/detect {"object": "green circle"}' }),
    detect_stream: await all(chat({ text: '/detect {"object": "green circle"}', stream: true })),
    models,
    model: await client.models.retrieve(models[0].id),
    response: whole,
    response_text: whole.output_text,
    response_events: events.map((event) => event.type),
    response_deltas: events.filter((event) => event.type === 'response.output_text.delta').map((event) => event.delta),
    response_end: events.at(-1),
    completion: await client.completions.create(completion),
    completion_stream: await all(client.completions.create({ ...completion, stream: true })),
    no_such_model: await refusal(chat({ model: 'gpt-4o' })),
    no_such_model_listed: await refusal(client.models.retrieve('a/b@1')),
    bad_field: await refusal(chat({ temperature: 9 })),
    tools: await refusal(chat({ tools: [tool] })),
    bad_picture: await refusal(chat({ url: 'data:image/png;base64,bm90IGEgcGljdHVyZQ==' })),
    far_picture: await refusal(chat({ url: 'https://example.com/cat.png' })),
  };
}

main().then((told) => console.log(JSON.stringify(told)));
