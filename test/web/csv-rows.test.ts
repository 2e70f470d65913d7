import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { PlacedOrder } from '../../client/responses.ts'
import { ordersCsv } from '../../web/trade/csv-rows.ts'

const order = (changes: Partial<PlacedOrder>): PlacedOrder =>
  ({
    order_id: '1-7',
    client_order_id: null,
    symbol: 'BTC-PERP',
    price_e18_raw: '60000100000000000000000',
    average_price_e18_raw: null,
    quantity_e18_raw: '1',
    post_only: true,
    status: 'CANCELLED',
    status_reason: 'IOC_REMAINDER',
    ...changes,
  }) as PlacedOrder

/** By column. */
function read(csv: string): Readonly<Record<string, string>> {
  const [head = '', row = ''] = csv.split('\r\n')
  const cells = row.split(',')
  return Object.fromEntries(head.split(',').map((name, at) => [name, cells[at] ?? '']))
}

describe('web/trade/csv-rows', () => {
  it('when an order is written, amounts are exact decimals, flags and reason are words, and missing values are empty', () => {
    const cells = read(ordersCsv([order({})]))
    expect(cells.price).to.equal('60000.1')
    expect(cells.quantity).to.equal('0.000000000000000001')
    expect(cells.average_price).to.equal('')
    expect(cells.client_order_id).to.equal('')
    expect(cells.post_only).to.equal('true')
    expect(cells.status_reason).to.equal('IOC_REMAINDER')
  })

  it('when a label would be executed by a spreadsheet, it has an apostrophe before it', () => {
    expect(read(ordersCsv([order({ client_order_id: '=HYPERLINK(1)' })])).client_order_id).to.equal(
      "'=HYPERLINK(1)",
    )
    expect(read(ordersCsv([order({ client_order_id: '-x' })])).client_order_id).to.equal("'-x")
    expect(read(ordersCsv([order({ client_order_id: '-12.5' })])).client_order_id).to.equal('-12.5')
  })

  it('when a label has a comma or a quote, it is quoted', () => {
    expect(ordersCsv([order({ client_order_id: 'a,"b"' })])).to.contain(',"a,""b""",')
  })

  it('when there is no order, the file has its head only', () => {
    expect(ordersCsv([]).trimEnd().split('\r\n')).to.have.length(1)
  })
})
