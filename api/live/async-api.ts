/** The AsyncAPI description of the live feed, generated from the schemas that validate its messages. */
import type { TSchema } from 'typebox'
import { CATALOGUE } from '../error-catalogue.ts'
import { LIVE_PATH } from './path.ts'
import { OPERATIONS, OPS, type Op } from './schema.ts'
import { ErrorMessage, Heartbeat, RESULTS, ServerShutdown, SubscribedMessage } from './server-schema.ts'
import { CLOSES } from './session.ts'
import { TOPIC_MESSAGES } from './topic-schema.ts'

const closes = Object.values(CLOSES).map(({ code, reason }) => `- ${code}: ${reason}`)

const DESCRIPTION = `
The live feed of the exchange: market data, account data, and commands with the bodies of their requests over REST.

A topic starts with a snapshot. Every further message has \`seq\` and \`prev_seq\`: the \`seq\` of the message before it in the same topic.
All messages of one batch carry its \`batch_id\` and arrive together. After a disconnect, subscribe with \`since\`.
\`read_after\` is a bookmark for reads over REST; the data of a message is readable there already.

Codes with which the server closes a connection:
${closes.join('\n')}
`.trim()

const camel = (name: string): string => name.replace(/[._](\w)/g, (_, letter: string) => letter.toUpperCase())

/** The server's messages by name. */
const SENT: Readonly<Record<string, TSchema>> = {
  subscribed: SubscribedMessage,
  ...TOPIC_MESSAGES,
  ...Object.fromEntries(Object.entries(RESULTS).map(([op, schema]) => [camel(`${op}_result`), schema])),
  error: ErrorMessage,
  heartbeat: Heartbeat,
  serverShutdown: ServerShutdown,
}

const RECEIVED: Readonly<Record<string, TSchema>> = Object.fromEntries(
  OPS.map((op) => [camel(op), OPERATIONS[op]]),
)

const inChannel = (name: string) => ({ $ref: `#/channels/live/messages/${name}` })
const CHANNEL = { $ref: '#/channels/live' }

const answersTo = (op: Op): readonly string[] =>
  op === 'subscribe' ? ['subscribed', 'error'] : [camel(`${op}_result`), 'error']

const operationOf = (op: Op) => ({
  action: 'receive',
  channel: CHANNEL,
  messages: [inChannel(camel(op))],
  reply: { channel: CHANNEL, messages: answersTo(op).map(inChannel) },
})

/** Messages that the server sends without an operation of the client. */
const PUSHED = [...Object.keys(TOPIC_MESSAGES), 'heartbeat', 'serverShutdown']

const messageOf = (name: string, schema: TSchema) => {
  const { description } = schema as { readonly description?: string }
  return {
    name,
    title: name,
    ...(description === undefined ? {} : { summary: description }),
    payload: schema,
  }
}

/** `publicUrl`: base URL by which clients reach the api. */
export function asyncApi(publicUrl: string): object {
  const { host, protocol } = new URL(publicUrl)
  const messages = { ...RECEIVED, ...SENT }
  const document = {
    asyncapi: '3.0.0',
    info: { title: 'Clearbatch live feed', version: '0', description: DESCRIPTION },
    defaultContentType: 'application/json',
    servers: { api: { host, protocol: protocol === 'https:' ? 'wss' : 'ws' } },
    channels: {
      live: {
        address: LIVE_PATH,
        description:
          'One connection. Authenticate by the header `Authorization` of the upgrade, or by `auth`.',
        messages: Object.fromEntries(
          Object.keys(messages).map((name) => [name, { $ref: `#/components/messages/${name}` }]),
        ),
      },
    },
    operations: {
      ...Object.fromEntries(OPS.map((op) => [camel(op), operationOf(op)])),
      feed: { action: 'send', channel: CHANNEL, messages: PUSHED.map(inChannel) },
    },
    components: {
      messages: Object.fromEntries(
        Object.entries(messages).map(([name, schema]) => [name, messageOf(name, schema)]),
      ),
      schemas: { errorCode: { type: 'string', enum: Object.keys(CATALOGUE) } },
    },
  }
  // Schemas of typebox carry properties that are no JSON.
  return JSON.parse(JSON.stringify(document)) as object
}
