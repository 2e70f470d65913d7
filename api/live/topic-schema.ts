/** The messages of topics. */
import Type, { type TSchema } from 'typebox'
import { ReadAfter, Time, words } from '../wire/schema.ts'

const envelope = {
  topic: Type.String({ description: 'Name of the topic.' }),
  seq: Type.Integer({ description: 'Of this message in the topic. It grows, but not by one.' }),
  prev_seq: Type.Integer({
    description: 'The `seq` of the message before it in the topic; of a snapshot 0.',
  }),
  ts: Time('When the change became readable.'),
}

const snapshot = (data: TSchema, description: string) =>
  Type.Object(
    {
      ...{ type: words(['snapshot'], 'Kind of the message.'), ...envelope },
      epoch: Type.Integer({ description: 'As in `subscribed`.' }),
      data,
    },
    { description },
  )

const update = (data: TSchema, description: string) =>
  Type.Object(
    {
      type: words(['update'], 'Kind of the message.'),
      ...envelope,
      batch_id: Type.Optional(Type.Integer({ description: 'The batch that caused the change.' })),
      read_after: Type.Optional(ReadAfter),
      data,
    },
    { description },
  )

/** By name in the description. */
export const TOPIC_MESSAGES = {
  snapshot: snapshot(Type.Unknown(), 'The state of a topic.'),
  update: update(Type.Unknown(), 'A change of a topic.'),
} as const
