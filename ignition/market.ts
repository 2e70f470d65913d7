/** One market on an exchange that is deployed: a module of its own, made from the market's description. */
import { buildModule } from '@nomicfoundation/hardhat-ignition/modules'
import { feedsOf, gridOf, parametersOf } from '../stack/deploy.ts'
import { assignRoles, type ExchangeModule } from './exchange.ts'
import type { MarketFile } from './market-file.ts'

export const marketModuleId = (marketId: number): string => `Market${marketId}`

/**
 * Deploys, wires and announces the market; lists it where the bank asks for no delay. The deployer holds the roles of the set-up.
 * Operators are proposed: they accept with their own keys.
 */
export const marketModule = (exchange: ExchangeModule, file: MarketFile, listsAtOnce: boolean) =>
  buildModule(marketModuleId(file.spec.marketId), (m) => {
    const { spec, oracle: feeds, operators, backstopCap } = file
    const { access, bank, accountManager, oracle, forwarder, desk, backstop, ...libraries } =
      m.useModule(exchange)
    const { ChangeLib, OrderDeskLib } = libraries
    const trader = m.contract(
      'IsolatedTrader',
      [gridOf(spec), parametersOf(spec, file.reports), bank, accountManager, oracle, forwarder, access, desk],
      { libraries: { ChangeLib, OrderDeskLib } },
    )
    for (const [index, feed] of feedsOf(spec).entries()) {
      m.call(oracle, 'setFeed', [feed, [...feeds.signers], feeds.threshold], { id: `feed_${index}` })
    }
    for (const operator of operators) {
      m.call(trader, 'proposeOperator', [operator], { id: `operator_${operator}` })
    }
    if (backstopCap > 0n) {
      const backed = m.call(backstop, 'setBacked', [trader, true])
      m.call(trader, 'setBackstop', [backstop, backstopCap], { after: [backed] })
    }
    const announced = m.call(bank, 'announceMarket', [trader])
    if (listsAtOnce) m.call(bank, 'listMarket', [trader], { after: [announced] })
    assignRoles(m, access, 'IsolatedTrader', trader)
    return { trader }
  })
