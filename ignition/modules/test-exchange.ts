/** The exchange over a collateral token of its own, which anyone may mint: test chains only. */
import { buildModule } from '@nomicfoundation/hardhat-ignition/modules'
import { deployExchange } from '../exchange.ts'

export default buildModule('Exchange', (m) => {
  const usdm = m.contract('TestUSDM')
  return { usdm, ...deployExchange(m, usdm) }
})
