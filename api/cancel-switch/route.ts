/** Arms, disarms and reads the dead-man switch of the caller. */
import { callerOf } from '../http/access.ts'
import type { App } from '../http/types.ts'
import type { CancelSwitch } from './cancel-switch.ts'
import { SwitchAnswer, SwitchBody } from './schema.ts'

const tags = ['orders']

export function cancelSwitchRoutes(
  app: App,
  { cancelSwitch }: { readonly cancelSwitch: CancelSwitch },
): void {
  app.post(
    '/v0/orders/cancel/all-after',
    {
      config: { access: 'user', bucket: 'cancels' },
      schema: {
        tags,
        summary: 'Arm the dead-man switch',
        description:
          'Cancels every live order of the account with the reason DEAD_MAN_SWITCH unless it is armed again within ' +
          '`timeout_seconds`. It fires once. 0 disarms it.',
        operationId: 'cancelAllAfter',
        body: SwitchBody,
        response: { 200: SwitchAnswer },
      },
    },
    (request) => cancelSwitch.set(callerOf(request).userId, request.body.timeout_seconds),
  )
  app.get(
    '/v0/orders/cancel/all-after',
    {
      config: { access: 'user' },
      schema: {
        tags,
        summary: 'Get the state of the dead-man switch',
        operationId: 'getCancelAllAfter',
        response: { 200: SwitchAnswer },
      },
    },
    (request) => cancelSwitch.show(callerOf(request).userId),
  )
}
