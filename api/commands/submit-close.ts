/** Closes a position with a signed reduce-only market order. Each auction fills at most the position's size. */
import { type MarketSpec, quantityOf } from '../../domain/market/market.ts'
import type { Steps } from '../../domain/units.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError } from '../errors.ts'
import type { ClosePositionAnswer, ClosePositionBody } from '../order-entry/schema.ts'
import { maybeAmount } from '../wire/amounts.ts'
import type { Arrival } from './arriving-placements.ts'
import type { Placed } from './command.ts'
import { afterExecution } from './earlier-attempts.ts'
import { type CommandPorts, executePlacement } from './submit-single.ts'

export async function closePosition(
  ports: CommandPorts,
  caller: Caller,
  body: ClosePositionBody,
  arrival: Arrival,
): Promise<ClosePositionAnswer> {
  const order = { ...body, order_type: 'MARKET', reduce_only: true }
  const { spec, placed, answer } = await executePlacement(ports, caller, order, {
    arrival,
    check: () => checkClose(body),
  })
  const { order_id, hash: order_hash } = placed.order
  return afterExecution(ports.logger, { order_id, order_hash }, async () => ({
    ...(await answer()),
    ...closingView(spec, placed),
  }))
}

function checkClose({
  order_type: type = 'MARKET',
  reduce_only: reduceOnly = true,
}: ClosePositionBody): void {
  if (type !== 'MARKET')
    throw new ApiError('CLOSE_NOT_MARKET', {
      field: 'order_type',
      expected: 'MARKET',
      received: type,
      nearest_valid: 'MARKET',
    })
  if (!reduceOnly)
    throw new ApiError('CLOSE_NOT_REDUCE_ONLY', {
      field: 'reduce_only',
      expected: true,
      received: false,
      nearest_valid: true,
    })
}

/** Part of the position that the order closes. For a repeated request, the present position counts. */
function closingView(spec: MarketSpec, { order, position }: Placed) {
  const view = (of: (size: number) => number) => {
    const steps = position === undefined ? null : (of(Math.abs(position)) as Steps)
    return steps === null ? null : quantityOf(spec, steps)
  }
  const isOpposed = position !== undefined && order.side === (position > 0 ? 'SHORT' : 'LONG')
  const rest = isOpposed && order.status === 'OPEN' ? order.quantity - order.filled - order.settling : 0
  return {
    ...maybeAmount(
      'position_quantity',
      view((size) => size),
    ),
    ...maybeAmount(
      'closing_quantity',
      view((size) => Math.min(rest, size)),
    ),
    ...maybeAmount(
      'staying_quantity',
      view((size) => size - Math.min(rest, size)),
    ),
  }
}
