// OpenAI's and Moondream's clients for Node where keys are asked for: the same questions as keys_python.py.
const { vl } = require('moondream');
const { OpenAI } = require('openai');

const [address, free, narrow, rare] = process.argv.slice(2);

async function ask(key, text = 'How many?') {
  const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: key, maxRetries: 0 });
  try {
    await client.chat.completions.create({ model: 'moondream', messages: [{ role: 'user', content: text }] });
  } catch (error) {
    return { error: error.constructor.name, status: error.status, retry_after: error.headers.get('retry-after') };
  }
  return { error: null };
}

async function moondreamStatus(apiKey) {
  try {
    await new vl({ apiKey, endpoint: `${address}/v1` }).query({ question: 'How many?' });
  } catch (error) {
    return Number(error.message.split(' ').pop());
  }
  return 200;
}

async function main() {
  return {
    free: await ask(free),
    wrong: await ask('wrong'),
    narrow: await ask(narrow),
    not_for_narrow: await ask(narrow, '/caption {"length": "short"}'),
    rare: [await ask(rare), await ask(rare)],
    moondream: await moondreamStatus(free),
    moondream_wrong: await moondreamStatus('wrong'),
    moondream_none: await moondreamStatus(''),
  };
}

main().then((told) => console.log(JSON.stringify(told)));
