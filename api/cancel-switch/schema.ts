/** The dead-man switch. */
import Type, { type Static } from 'typebox'
import { expects, named, namedInput, nullable, Time } from '../wire/schema.ts'

export const SWITCH_SECONDS = { least: 5, most: 900 } as const

export const SwitchBody = namedInput('SwitchBody', {
  timeout_seconds: Type.Integer({
    minimum: 0,
    maximum: SWITCH_SECONDS.most,
    ...expects(`${SWITCH_SECONDS.least} to ${SWITCH_SECONDS.most}, or 0 to disarm`),
    description:
      `${SWITCH_SECONDS.least} to ${SWITCH_SECONDS.most}; 0 disarms. ` +
      'The timeout starts at the server time of the request.',
  }),
})

export const SwitchAnswer = named('SwitchAnswer', {
  armed: Type.Boolean(),
  timeout_seconds: nullable(Type.Integer({ description: 'The timeout of the last arming.' })),
  fire_at: nullable(
    Time(
      'Time at which every live order of the account is cancelled unless the switch is armed again before.',
    ),
  ),
  remaining_seconds: nullable(Type.Number({ description: 'Seconds until `fire_at`; 0 once it has passed.' })),
  server_time: Time('The time from which `remaining_seconds` counts.'),
})
export type SwitchAnswer = Static<typeof SwitchAnswer>
