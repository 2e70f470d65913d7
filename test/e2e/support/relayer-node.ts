/** A node between a running keeper and its chain that responds to the sends of some relayer lanes twice, late or never. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Transaction } from 'ethers'
import type { Stack } from '../../../stack/stack.ts'
import { isSend, type RpcProxy, type RpcRequest, startRespondingProxy } from '../../support/rpc-proxy.ts'

/**
 * `twice`: the node gets each transaction twice, and the keeper the second response. `late`: the node gets it after a pause. `never`: the
 * node gets it, the keeper no response. `lost`: the node does not get it, unless it is a transaction of nothing.
 */
export type Manner = 'once' | 'twice' | 'late' | 'never' | 'lost'

const LATE_MS = 1_500

export class RelayerNode {
  manner: Manner = 'once'
  readonly #stack: Stack
  readonly #relayers: ReadonlySet<string>
  #proxy: RpcProxy | null = null

  private constructor(stack: Stack, relayers: readonly string[]) {
    this.#stack = stack
    this.#relayers = new Set(relayers.map((address) => address.toLowerCase()))
  }

  /** Restarts the keeper behind the node. `relayers`: the addresses whose sends the manner concerns. */
  static async open(stack: Stack, relayers: readonly string[]): Promise<RelayerNode> {
    const node = new RelayerNode(stack, relayers)
    node.#proxy = await startRespondingProxy(stack.chain.url, (request, forward) =>
      node.#isConcerned(request) ? node.#respond(request, forward) : forward(),
    )
    await stack.keeper.restart('SIGTERM', { RPC_URL: node.#proxy.url })
    await stack.keeper.ready()
    return node
  }

  /** Restarts the keeper without the node. */
  async close(): Promise<void> {
    this.manner = 'once'
    await this.#stack.keeper.restart('SIGTERM')
    await this.#stack.keeper.ready()
    await this.#proxy?.close()
  }

  #isConcerned(request: RpcRequest): boolean {
    if (!isSend(request)) return false
    const { from } = Transaction.from(String(request.params[0]))
    return this.#relayers.has(from?.toLowerCase() ?? '')
  }

  async #respond<Response>(
    { params }: RpcRequest,
    forward: () => Promise<Response>,
  ): Promise<Response | 'silence' | 'close'> {
    switch (this.manner) {
      case 'once':
        return forward()
      case 'twice':
        await forward()
        return forward()
      case 'late':
        await sleep(LATE_MS)
        return forward()
      case 'never':
        await forward()
        return 'silence'
      case 'lost':
        return Transaction.from(String(params[0])).data === '0x' ? forward() : 'close'
    }
  }
}
