/** `npm run gas`: prints the gas per settled order and of every other call, as a table and as one JSON line. */

import { argumentsOf } from '../service/command-line.ts'
import { gasTable, MOVES, SALTS, SIZES } from '../test/contracts/support/gas.ts'
import { adjustmentGas } from '../test/contracts/support/gas-adjust.ts'
import { ownerGas } from '../test/contracts/support/gas-owner.ts'

argumentsOf({ command: 'npm run bench:gas', flags: {} })
const table = { ...(await gasTable()), ...(await ownerGas()), ...(await adjustmentGas()) }
const perOrder = new Set<string>()
console.log(`gas per order       ${MOVES.map((move) => move.padStart(10)).join('')}`)
for (const mode of SALTS) {
  for (const size of SIZES) {
    const names = MOVES.map((move) => `${mode} ${size} ${move}`)
    for (const name of names) perOrder.add(name)
    const cells = names.map((name) => String(table[name]).padStart(10)).join('')
    console.log(`${mode.padEnd(12)}${String(size).padStart(4)}    ${cells}`)
  }
}
for (const [name, gas] of Object.entries(table)) {
  if (!perOrder.has(name)) console.log(`${name.padEnd(52)}${String(gas).padStart(8)}`)
}
console.log(JSON.stringify({ bench: 'gas', unit: 'gas', ...table }))
