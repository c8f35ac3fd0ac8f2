// Moondream's own client for Node, every call that it has, without a key: `moondream_node.cjs ADDRESS PICTURE`.
const { readFileSync } = require('fs');
const { vl } = require('moondream');

const [address, path] = process.argv.slice(2);
const question = 'How many circles are there?';
const object = 'green circle';

async function all(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return pieces;
}

async function main() {
  const client = new vl({ apiKey: '', endpoint: `${address}/v1` });
  const image = readFileSync(path);
  const imageUrl = `data:image/png;base64,${image.toString('base64')}`;
  const refused = await client.detect({ image, object, variant: 'moondream/nobody@1' }).catch((e) => e.message);
  return {
    query: await client.query({ image, question }),
    query_stream: await all((await client.query({ image, question, stream: true })).answer),
    reasoning: await client.query({ image, question, reasoning: true }),
    without_picture: await client.query({ question }),
    caption: (await client.caption({ image })).caption,
    caption_short: (await client.caption({ image, length: 'short' })).caption,
    caption_stream: await all((await client.caption({ image, stream: true })).caption),
    detect: await client.detect({ image, object }),
    detect_encoded: await client.detect({ image: { imageUrl }, object }),
    point: await client.point({ image, object }),
    point_nothing: await client.point({ image, object: 'black cross' }),
    segment: await client.segment({ image, object }),
    segment_stream: await all((await client.segment({ image, object, stream: true })).stream),
    named: await client.detect({ image, object, variant: 'moondream' }),
    stranger: Number(refused.split(' ').pop()),
  };
}

main().then((told) => console.log(JSON.stringify(told)));
