/** The messages that the server sends. */
import Type, { type TSchema } from 'typebox'
import { CancelAllAnswer, CancelBatchAnswer, PlaceBatchAnswer } from '../order-entry/batch-schema.ts'
import { ReplaceAnswer, ReplaceBatchAnswer } from '../order-entry/replace-schema.ts'
import { CancelAnswer, PlaceOrderAnswer } from '../order-entry/schema.ts'
import { nullable, ReadAfter, Time, words } from '../wire/schema.ts'
import { Id, type Op, Topics } from './schema.ts'

const ts = Time('Time of the message.')
const type = <Name extends string>(name: Name) => words([name], 'Kind of the message.')

const result = (op: Op, data: TSchema, bookmark: Record<string, TSchema> = {}) =>
  Type.Object(
    { type: type('result'), id: Id, op: words([op], 'The operation.'), ts, ...bookmark, data },
    { description: `The operation \`${op}\` is done.` },
  )

/** `data` is the answer over REST. */
const commandResult = (op: Op, data: TSchema) => result(op, data, { read_after: ReadAfter })

/** By operation. `subscribe` is answered by `subscribed` for each topic. */
export const RESULTS = {
  unsubscribe: result('unsubscribe', Type.Object({ topics: Topics })),
  auth: result(
    'auth',
    Type.Object({
      user_id: Type.Integer(),
      scope: words(['trade', 'read'], 'What the credential may do.'),
      credential: words(['api_key', 'identity_token'], 'Kind of the credential.'),
      expires_at: nullable(
        Time(
          'When the identity token expires, and the connection ends unless it is renewed; null for a key.',
        ),
      ),
    }),
  ),
  ping: result('ping', Type.Object({})),
  cancel_on_disconnect: result(
    'cancel_on_disconnect',
    Type.Object({ armed: Type.Boolean(), grace_seconds: Type.Integer() }),
  ),
  place: commandResult('place', PlaceOrderAnswer),
  place_batch: commandResult('place_batch', PlaceBatchAnswer),
  replace: commandResult('replace', ReplaceAnswer),
  replace_batch: commandResult('replace_batch', ReplaceBatchAnswer),
  cancel: commandResult('cancel', CancelAnswer),
  cancel_by_client_id: commandResult('cancel_by_client_id', CancelAnswer),
  cancel_batch: commandResult('cancel_batch', CancelBatchAnswer),
  cancel_all: commandResult('cancel_all', CancelAllAnswer),
} as const

export const ErrorMessage = Type.Object(
  {
    type: type('error'),
    id: Type.Unsafe<string | number | null>({
      type: ['string', 'integer', 'null'],
      description: 'Of the operation; null if the message has no valid id.',
    }),
    topic: Type.Optional(Type.String({ description: 'The topic that cannot be subscribed.' })),
    ts,
    data: Type.Object({
      status: Type.Integer({ description: 'The HTTP status that the error has over REST.' }),
      message: Type.String(),
      details: Type.Object(
        { code: Type.String(), retryable: Type.Boolean(), request_id: Type.String() },
        { additionalProperties: true, description: 'As in errors over REST.' },
      ),
      retry_after: Type.Optional(Type.Number({ description: 'Seconds, as in the header `Retry-After`.' })),
    }),
  },
  { description: 'An operation or a message was rejected.' },
)

export const SubscribedMessage = Type.Object(
  {
    type: type('subscribed'),
    id: Id,
    topic: Type.String(),
    seq: Type.Integer({ description: 'Of the last message that the start of the subscription contains.' }),
    ts,
    data: Type.Object({
      epoch: Type.Integer({
        description: 'Sequences of another epoch name other messages: the read model was rebuilt since.',
      }),
      resumed: Type.Boolean({
        description: 'Whether the messages that follow continue after `since`; otherwise a snapshot follows.',
      }),
    }),
  },
  { description: 'A subscription starts: a snapshot follows, or what followed `since`.' },
)

export const Heartbeat = Type.Object(
  {
    type: type('heartbeat'),
    ts,
    data: Type.Object({
      topics: Type.Record(Type.String(), Type.Integer(), {
        description: 'The `seq` of the last message of each subscribed topic.',
      }),
    }),
  },
  {
    description:
      'Sent every few seconds. A topic whose seq is above that of the last message received has lost messages.',
  },
)

export const ServerShutdown = Type.Object(
  {
    type: type('server_shutdown'),
    ts,
    data: Type.Object({
      reconnect_after_ms: Type.Integer({
        description: 'Wait this long before you connect again. It differs between clients.',
      }),
    }),
  },
  {
    description:
      'The process ends: it accepts no operations, answers those in flight and closes the connection with code 1012.',
  },
)
