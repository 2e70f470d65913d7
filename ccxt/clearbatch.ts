//  ---------------------------------------------------------------------------

import { keccak_256 as keccak } from '@noble/hashes/sha3.js';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { Precise } from './base/Precise.js';
import Exchange from './abstract/clearbatch.js';
import { ExchangeError, ArgumentsRequired, AuthenticationError, BadRequest, BadSymbol, DuplicateOrderId, ExchangeNotAvailable, InsufficientFunds, InvalidNonce, InvalidOrder, MarketClosed, NotSupported, OnMaintenance, OperationFailed, OperationRejected, OrderNotFound, PermissionDenied, RateLimitExceeded, RequestTimeout } from './base/errors.js';
import { TICK_SIZE } from './base/functions/number.js';
import { ecdsa } from './base/functions/crypto.js';
import type { Balances, Dict, FundingHistory, FundingRate, FundingRateHistory, FundingRates, Int, int, Leverage, MarginModification, Market, Num, OHLCV, OpenInterest, Order, OrderBook, OrderRequest, OrderSide, OrderType, Position, Str, Strings, Ticker, Tickers, Trade, TradingFees } from './base/types.js';

//  ---------------------------------------------------------------------------

/**
 * @class clearbatch
 * @description Orders meet in batch auctions; positions settle on an EVM chain without custody. Orders are signed with the key of the wallet or of a session key.
 * @augments Exchange
 */
export default class clearbatch extends Exchange {
    describe () {
        return this.deepExtend (super.describe (), {
            'id': 'clearbatch',
            'name': 'Clearbatch',
            'countries': [],
            'version': 'v0',
            'rateLimit': 50,
            'certified': false,
            'pro': false,
            'dex': true,
            'has': {
                'CORS': true,
                'spot': false,
                'margin': false,
                'swap': true,
                'future': true,
                'option': false,
                'index': false,
                'ws': false,
                'addMargin': true,
                'borrowCrossMargin': false,
                'borrowIsolatedMargin': false,
                'borrowMargin': false,
                'cancelAllOrders': true,
                'cancelAllOrdersAfter': true,
                'cancelOrder': true,
                'cancelOrders': true,
                'cancelOrdersForSymbols': false,
                'cancelOrdersWithClientOrderId': false,
                'cancelOrderWithClientOrderId': true,
                'closeAllPositions': false,
                'closePosition': true,
                'createDepositAddress': false,
                'createLimitBuyOrder': true,
                'createLimitOrder': true,
                'createLimitSellOrder': true,
                'createMarketBuyOrder': true,
                'createMarketBuyOrderWithCost': false,
                'createMarketOrder': true,
                'createMarketOrderWithCost': false,
                'createMarketSellOrder': true,
                'createMarketSellOrderWithCost': false,
                'createOrder': true,
                'createOrders': true,
                'createOrderWithTakeProfitAndStopLoss': false,
                'createPostOnlyOrder': false,
                'createReduceOnlyOrder': true,
                'createStopLimitOrder': true,
                'createStopLossOrder': true,
                'createStopMarketOrder': true,
                'createStopOrder': true,
                'createTakeProfitOrder': true,
                'createTrailingAmountOrder': false,
                'createTrailingPercentOrder': false,
                'createTriggerOrder': true,
                'deposit': false,
                'editOrder': true,
                'editOrders': false,
                'editOrderWithClientOrderId': false,
                'fetchAccounts': false,
                'fetchADLRank': false,
                'fetchBalance': true,
                'fetchBidsAsks': true,
                'fetchBorrowInterest': false,
                'fetchBorrowRate': false,
                'fetchBorrowRates': false,
                'fetchBorrowRatesPerSymbol': false,
                'fetchBorrowRateHistories': false,
                'fetchBorrowRateHistory': false,
                'fetchCanceledAndClosedOrders': false,
                'fetchCanceledOrders': true,
                'fetchClosedOrder': false,
                'fetchClosedOrders': true,
                'fetchConvertCurrencies': false,
                'fetchConvertQuote': false,
                'fetchConvertTrade': false,
                'fetchConvertTradeHistory': false,
                'fetchCrossBorrowRate': false,
                'fetchCrossBorrowRates': false,
                'fetchCurrencies': false,
                'fetchDeposit': false,
                'fetchDepositAddress': false,
                'fetchDepositAddresses': false,
                'fetchDepositAddressesByNetwork': false,
                'fetchDeposits': false,
                'fetchDepositsWithdrawals': false,
                'fetchDepositWithdrawFee': false,
                'fetchDepositWithdrawFees': false,
                'fetchFundingHistory': true,
                'fetchFundingInterval': false,
                'fetchFundingIntervals': false,
                'fetchFundingRate': true,
                'fetchFundingRateHistory': true,
                'fetchFundingRates': true,
                'fetchGreeks': false,
                'fetchIndexOHLCV': true,
                'fetchIsolatedBorrowRate': false,
                'fetchIsolatedBorrowRates': false,
                'fetchIsolatedPositions': false,
                'fetchL2OrderBook': true,
                'fetchL3OrderBook': false,
                'fetchLastPrices': false,
                'fetchLedger': false,
                'fetchLedgerEntry': false,
                'fetchLeverage': true,
                'fetchLeverages': false,
                'fetchLeverageTiers': false,
                'fetchLiquidations': false,
                'fetchLongShortRatio': false,
                'fetchLongShortRatioHistory': false,
                'fetchMarginAdjustmentHistory': false,
                'fetchMarginMode': false,
                'fetchMarginModes': false,
                'fetchMarketLeverageTiers': false,
                'fetchMarkets': true,
                'fetchMarkOHLCV': true,
                'fetchMarkPrice': false,
                'fetchMarkPrices': false,
                'fetchMyLiquidations': false,
                'fetchMySettlementHistory': false,
                'fetchMyTrades': true,
                'fetchOHLCV': true,
                'fetchOpenInterest': true,
                'fetchOpenInterestHistory': true,
                'fetchOpenInterests': false,
                'fetchOpenOrder': false,
                'fetchOpenOrders': true,
                'fetchOption': false,
                'fetchOptionChain': false,
                'fetchOrder': true,
                'fetchOrderBook': true,
                'fetchOrderBooks': false,
                'fetchOrders': true,
                'fetchOrdersByStatus': false,
                'fetchOrderTrades': true,
                'fetchOrderWithClientOrderId': true,
                'fetchPosition': true,
                'fetchPositionADLRank': false,
                'fetchPositionHistory': false,
                'fetchPositionMode': false,
                'fetchPositions': true,
                'fetchPositionsADLRank': false,
                'fetchPositionsForSymbol': true,
                'fetchPositionsHistory': false,
                'fetchPositionsRisk': false,
                'fetchPremiumIndexOHLCV': false,
                'fetchSettlementHistory': false,
                'fetchStatus': true,
                'fetchTicker': true,
                'fetchTickers': true,
                'fetchTime': true,
                'fetchTrades': true,
                'fetchTradingFee': true,
                'fetchTradingFees': true,
                'fetchTradingLimits': false,
                'fetchTransactionFee': false,
                'fetchTransactionFees': false,
                'fetchTransactions': false,
                'fetchTransfer': false,
                'fetchTransfers': false,
                'fetchUnderlyingAssets': false,
                'fetchVolatilityHistory': false,
                'fetchWithdrawAddresses': false,
                'fetchWithdrawal': false,
                'fetchWithdrawals': false,
                'fetchWithdrawalWhitelist': false,
                'reduceMargin': true,
                'repayCrossMargin': false,
                'repayIsolatedMargin': false,
                'sandbox': false,
                'setLeverage': 'emulated',
                'setMargin': false,
                'setMarginMode': false,
                'setPositionMode': false,
                'signIn': false,
                'transfer': false,
                'withdraw': false,
            },
            'timeframes': {
                '1m': '1m',
                '3m': '3m',
                '5m': '5m',
                '15m': '15m',
                '30m': '30m',
                '1h': '1h',
                '2h': '2h',
                '4h': '4h',
                '8h': '8h',
                '12h': '12h',
                '1d': '1d',
                '1w': '1w',
            },
            'hostname': '127.0.0.1:8080',
            'urls': {
                'api': {
                    'rest': 'http://{hostname}',
                },
            },
            'requiredCredentials': {
                'apiKey': true,
                'secret': false,
                'walletAddress': true,
                'privateKey': true,
            },
            'api': {
                'public': {
                    'get': {
                        'time': 1,
                        'status': 1,
                        'markets': 1,
                        'markets/stats': 1,
                        'markets/{market_id}': 1,
                        'markets/{market_id}/candlesticks': 1,
                        'markets/{market_id}/funding-rates': 1,
                        'markets/{market_id}/open-interest': 1,
                        'tickers': 1,
                        'orderbook/by-market/{market_id}': 1,
                        'fills/by-market/{market_id}': 1,
                        'contracts/shared': 1,
                    },
                },
                'private': {
                    'get': {
                        'me': 1,
                        'balance/{user_id}/margin': 1,
                        'positions/by-user/{user_id}': 1,
                        'orders/{order_id}': 1,
                        'orders/by-client-id/{client_order_id}': 1,
                        'orders/by-user/{user_id}': 1,
                        'orders/{order_id}/fills': 1,
                        'fills/by-user/{user_id}': 1,
                        'account/transactions': 1,
                    },
                    'post': {
                        'orders': 1,
                        'orders/validate': 1,
                        'orders/place/batch': 5,
                        'orders/replace': 1,
                        'orders/replace/batch': 5,
                        'positions/close': 1,
                        'orders/cancel/by-hash/{order_hash}': 1,
                        'orders/cancel/by-client-id/{client_order_id}': 1,
                        'orders/cancel/batch': 5,
                        'orders/cancel/all': 5,
                        'orders/cancel/all-after': 1,
                        'account/adjust-margin': 1,
                        'account/adjust-leverage': 1,
                    },
                },
            },
            'fees': {
                'trading': {
                    'tierBased': false,
                    'percentage': true,
                    'maker': this.parseNumber ('0'),
                    'taker': this.parseNumber ('0.0005'),
                },
            },
            'options': {
                'defaultLeverage': 1,
                'leverages': {},
                'adjustmentLifetime': 60, // seconds
                'marketOrderLifetime': 60, // seconds, the most that a signed market order may have
            },
            'precisionMode': TICK_SIZE,
            'exceptions': {
                'exact': {
                    'CREDENTIAL_MISSING': AuthenticationError,
                    'CREDENTIAL_MALFORMED': AuthenticationError,
                    'API_KEY_UNKNOWN': AuthenticationError,
                    'BEARER_INVALID': AuthenticationError,
                    'BEARER_EXPIRED': AuthenticationError,
                    'SIGNATURE_FORMAT': AuthenticationError,
                    'SIGNATURE_MISMATCH': AuthenticationError,
                    'SIGNATURE_UNRECOVERABLE': AuthenticationError,
                    'SESSION_KEY_REVOKED': AuthenticationError,
                    'SESSION_KEY_REVOKING': AuthenticationError,
                    'SESSION_KEY_EXPIRED': AuthenticationError,
                    'ADJUSTMENT_SIGNATURE_FORMAT': AuthenticationError,
                    'ADJUSTER_UNAUTHORIZED': AuthenticationError,
                    'SESSION_KEY_NOT_PERMITTED': PermissionDenied,
                    'READ_ONLY_KEY': PermissionDenied,
                    'ADDRESS_NOT_ALLOWED': PermissionDenied,
                    'NOT_YOURS': PermissionDenied,
                    'INVALID_JSON': BadRequest,
                    'INVALID_FIELD': BadRequest,
                    'MISSING_FIELD': BadRequest,
                    'UNKNOWN_FIELD': BadRequest,
                    'INVALID_CURSOR': BadRequest,
                    'CLIENT_REQUEST_REUSED': BadRequest,
                    'ROUTE_NOT_FOUND': BadRequest,
                    'MARKET_NOT_FOUND': BadSymbol,
                    'ORDER_NOT_FOUND': OrderNotFound,
                    'USER_NOT_FOUND': ExchangeError,
                    'ORDER_TYPE_UNKNOWN': InvalidOrder,
                    'PRICE_REQUIRED': InvalidOrder,
                    'PRICE_NOT_ALLOWED': InvalidOrder,
                    'TRIGGER_REQUIRED': InvalidOrder,
                    'TRIGGER_NOT_ALLOWED': InvalidOrder,
                    'TICK_SIZE': InvalidOrder,
                    'STEP_SIZE': InvalidOrder,
                    'QUANTITY_REQUIRED': InvalidOrder,
                    'QUANTITY_MISMATCH': InvalidOrder,
                    'MIN_ORDER_SIZE': InvalidOrder,
                    'MAX_ORDER_SIZE': InvalidOrder,
                    'MIN_ORDER_PRICE': InvalidOrder,
                    'MAX_ORDER_PRICE': InvalidOrder,
                    'LEVERAGE_CAP': InvalidOrder,
                    'ORDER_EXPIRED': InvalidOrder,
                    'EXPIRATION_RANGE': InvalidOrder,
                    'REDUCE_ONLY_REQUIRED': InvalidOrder,
                    'BRACKET_NOT_ALLOWED': InvalidOrder,
                    'BRACKET_MISMATCH': InvalidOrder,
                    'BRACKET_TAKEN': InvalidOrder,
                    'CLOSE_NOT_MARKET': InvalidOrder,
                    'CLOSE_NOT_REDUCE_ONLY': InvalidOrder,
                    'REDUCE_ONLY_NO_POSITION': InvalidOrder,
                    'PRICE_BAND': InvalidOrder,
                    'ORDER_FORCED': InvalidOrder,
                    'OPEN_ORDER_LIMIT': OperationRejected,
                    'POSITION_LIMIT': OperationRejected,
                    'POSITION_IN_LIQUIDATION': OperationRejected,
                    'NO_POSITION': OperationRejected,
                    'NOTHING_REMOVABLE': OperationRejected,
                    'REMOVAL_TOO_LARGE': OperationRejected,
                    'AMOUNT_BELOW_MINIMUM': OperationRejected,
                    'ADJUSTMENT_ABORTED': OperationRejected,
                    'INSUFFICIENT_MARGIN': InsufficientFunds,
                    'MARGIN_REQUIREMENT': InsufficientFunds,
                    'ADJUSTMENT_UNFUNDED': InsufficientFunds,
                    'ADDITION_INSUFFICIENT': InsufficientFunds,
                    'CLIENT_ORDER_ID_USED': DuplicateOrderId,
                    'SALT_USED': InvalidNonce,
                    'SALT_RANGE': InvalidNonce,
                    'MARGIN_NONCE_USED': InvalidNonce,
                    'MARGIN_NONCE_BELOW_MINIMUM': InvalidNonce,
                    'DEADLINE_PASSED': InvalidNonce,
                    'MARKET_NOT_OPEN': MarketClosed,
                    'MARKET_ENDED': MarketClosed,
                    'RATE_LIMITED': RateLimitExceeded,
                    'CONNECTION_LIMIT': RateLimitExceeded,
                    'LARGE_PAGE_LIMIT': RateLimitExceeded,
                    'HTV1_READ_AFTER_CAPACITY': RateLimitExceeded,
                    'REQUEST_TIMEOUT': RequestTimeout,
                    'OUTCOME_UNKNOWN': RequestTimeout, // the command may have been executed: read the order by its label
                    'ADJUSTMENT_PENDING': OperationFailed,
                    'ADJUSTMENT_IN_FLIGHT': OperationFailed,
                    'INTERNAL': OperationFailed,
                    'ORACLE_STALE': ExchangeNotAvailable,
                    'CHAIN_UNSEEN': ExchangeNotAvailable,
                    'OVERLOADED': ExchangeNotAvailable,
                    'DATABASE_UNAVAILABLE': ExchangeNotAvailable,
                    'LIMITS_UNAVAILABLE': ExchangeNotAvailable,
                    'READ_MODEL_FILLING': ExchangeNotAvailable,
                    'HTV1_READ_AFTER_PENDING': ExchangeNotAvailable,
                    'HTV1_READ_AFTER_UNAVAILABLE': ExchangeNotAvailable,
                    'SHUTTING_DOWN': OnMaintenance,
                },
                'broad': {},
            },
        });
    }

    async fetchTime (params = {}): Promise<Int> {
        const response = await this.publicGetTime (params);
        return this.safeInteger (response, 'unix_ms');
    }

    async fetchStatus (params = {}) {
        const response = await this.publicGetStatus (params);
        const status = this.safeString (response, 'status');
        return {
            'status': (status === 'ok') ? 'ok' : 'error',
            'updated': this.parse8601 (this.safeString (response, 'time')),
            'eta': undefined,
            'url': undefined,
            'info': response,
        };
    }

    async fetchMarkets (params = {}): Promise<Market[]> {
        const response = await this.publicGetMarkets (params);
        return this.parseMarkets (response);
    }

    parseMarket (market: Dict): Market {
        const id = this.safeString (market, 'market_id');
        const name = this.safeString (market, 'symbol');
        const kind = this.safeString (market, 'type');
        const isSwap = (kind === 'perpetual');
        const quote = 'USDM';
        let baseId = name;
        if (isSwap) {
            baseId = name.replace ('-PERP', '');
        }
        const base = this.safeCurrencyCode (baseId.replaceAll ('-', ''));
        let symbol = base + '/' + quote + ':' + quote;
        const expiryDatetime = this.safeString (market, 'expires_at');
        const expiry = this.parse8601 (expiryDatetime);
        if (expiry !== undefined) {
            symbol = symbol + '-' + this.yymmdd (expiry);
        }
        return this.safeMarketStructure ({
            'id': id,
            'lowercaseId': name.toLowerCase (),
            'symbol': symbol,
            'base': base,
            'quote': quote,
            'settle': quote,
            'baseId': baseId,
            'quoteId': quote,
            'settleId': quote,
            'type': isSwap ? 'swap' : 'future',
            'spot': false,
            'margin': false,
            'swap': isSwap,
            'future': !isSwap,
            'option': false,
            'active': this.safeBool (market, 'trading_enabled'),
            'contract': true,
            'linear': true,
            'inverse': false,
            'taker': this.safeNumber (market, 'taker_fee'),
            'maker': this.safeNumber (market, 'maker_fee'),
            'contractSize': this.parseNumber ('1'),
            'expiry': expiry,
            'expiryDatetime': this.iso8601 (expiry),
            'strike': undefined,
            'optionType': undefined,
            'precision': {
                'amount': this.parseNumber (this.parseE18 (this.safeString (market, 'step_size_e18_raw'))),
                'price': this.parseNumber (this.parseE18 (this.safeString (market, 'tick_size_e18_raw'))),
            },
            'limits': {
                'leverage': {
                    'min': this.parseNumber ('1'),
                    'max': this.safeNumber (market, 'max_leverage'),
                },
                'amount': {
                    'min': this.safeNumber (market, 'min_order_size'),
                    'max': this.safeNumber (market, 'max_order_size'),
                },
                'price': {
                    'min': this.safeNumber (market, 'min_order_price'),
                    'max': undefined,
                },
                'cost': {
                    'min': undefined,
                    'max': undefined,
                },
            },
            'created': undefined,
            'info': market,
        });
    }

    parseE18 (raw: Str): Str {
        if (raw === undefined) {
            return undefined;
        }
        return Precise.stringDiv (raw, '1000000000000000000', 18);
    }

    safeE18 (response, key: string): Str {
        // the exact field of an amount
        return this.parseE18 (this.safeString (response, key + '_e18_raw'));
    }

    async fetchTicker (symbol: string, params = {}): Promise<Ticker> {
        const tickers = await this.fetchTickers ([ symbol ], params);
        const ticker = this.safeDict (tickers, this.symbol (symbol));
        if (ticker === undefined) {
            throw new BadSymbol (this.id + ' fetchTicker() found no ticker of ' + symbol);
        }
        return ticker as Ticker;
    }

    async fetchTickers (symbols: Strings = undefined, params = {}): Promise<Tickers> {
        await this.loadMarkets ();
        symbols = this.marketSymbols (symbols);
        const response = await this.publicGetTickers (params);
        return this.parseTickers (response, symbols);
    }

    async fetchBidsAsks (symbols: Strings = undefined, params = {}): Promise<Tickers> {
        return await this.fetchTickers (symbols, params);
    }

    parseTicker (ticker: Dict, market: Market = undefined): Ticker {
        market = this.safeMarket (this.safeString (ticker, 'market_id'), market);
        return this.safeTicker ({
            'symbol': market['symbol'],
            'timestamp': undefined,
            'datetime': undefined,
            'high': this.safeE18 (ticker, 'high_24h'),
            'low': this.safeE18 (ticker, 'low_24h'),
            'bid': this.safeE18 (ticker, 'bid_price'),
            'bidVolume': this.safeE18 (ticker, 'bid_quantity'),
            'ask': this.safeE18 (ticker, 'ask_price'),
            'askVolume': this.safeE18 (ticker, 'ask_quantity'),
            'vwap': undefined,
            'open': this.safeE18 (ticker, 'open_24h'),
            'close': this.safeE18 (ticker, 'last_price'),
            'last': this.safeE18 (ticker, 'last_price'),
            'previousClose': undefined,
            'change': this.safeE18 (ticker, 'change_24h'),
            'percentage': undefined,
            'average': undefined,
            'baseVolume': this.safeE18 (ticker, 'volume_24h'),
            'quoteVolume': this.safeE18 (ticker, 'notional_24h'),
            'markPrice': this.safeE18 (ticker, 'mark_price'),
            'indexPrice': this.safeE18 (ticker, 'oracle_price'),
            'info': ticker,
        }, market);
    }

    async fetchOrderBook (symbol: string, limit: Int = undefined, params = {}): Promise<OrderBook> {
        await this.loadMarkets ();
        const market = this.market (symbol);
        const request: Dict = {
            'market_id': market['id'],
        };
        if (limit !== undefined) {
            request['depth'] = limit;
        }
        const response = await this.publicGetOrderbookByMarketMarketId (this.extend (request, params));
        const orderbook = this.parseOrderBook (response, market['symbol'], undefined, 'long_levels', 'short_levels', 'price', 'quantity');
        orderbook['nonce'] = this.safeInteger (response, 'shard_seq');
        return orderbook;
    }

    rememberWrite (response) {
        // reads that carry the bookmark show at least this write
        this.options['readAfter'] = this.safeDict (response, 'read_after');
        return response;
    }

    readAfter (request: Dict): Dict {
        const bookmark = this.safeDict (this.options, 'readAfter');
        if (bookmark === undefined) {
            return request;
        }
        return this.extend ({
            'read_after_shard_id': this.safeString (bookmark, 'shard_id'),
            'read_after_shard_seq': this.safeString (bookmark, 'shard_seq'),
        }, request);
    }

    rangeRequest (request: Dict, since: Int = undefined, limit: Int = undefined, params = {}): Dict {
        // lists are newest first
        if (since !== undefined) {
            request['from'] = this.iso8601 (since);
        }
        const until = this.safeInteger (params, 'until');
        if (until !== undefined) {
            request['to'] = this.iso8601 (until);
        }
        if (limit !== undefined) {
            request['limit'] = limit;
        }
        return this.extend (request, this.omit (params, 'until'));
    }

    async fetchTrades (symbol: string, since: Int = undefined, limit: Int = undefined, params = {}): Promise<Trade[]> {
        await this.loadMarkets ();
        const market = this.market (symbol);
        // both sides of a trade are listed: one side counts the volume once
        const request: Dict = {
            'market_id': market['id'],
            'side': 'LONG',
        };
        const response = await this.publicGetFillsByMarketMarketId (this.rangeRequest (request, since, limit, params));
        return this.parseTrades (this.safeList (response, 'fills', []), market, since, limit);
    }

    parseTrade (trade: Dict, market: Market = undefined): Trade {
        market = this.safeMarket (this.safeString (trade, 'market_id'), market);
        const timestamp = this.parse8601 (this.safeString (trade, 'created_at'));
        const quantity = this.safeE18 (trade, 'quantity');
        const takerQuantity = this.safeE18 (trade, 'taker_quantity');
        const isOwn = ('order_id' in trade);
        let side = undefined;
        let takerOrMaker = undefined;
        let fee = undefined;
        if (isOwn) {
            side = this.parseSide (this.safeString (trade, 'side'));
            // a fill may be part maker and part taker: then neither word holds
            if (Precise.stringEquals (takerQuantity, '0')) {
                takerOrMaker = 'maker';
            } else if (Precise.stringEquals (takerQuantity, quantity)) {
                takerOrMaker = 'taker';
            }
            fee = {
                'cost': this.safeE18 (trade, 'fee'),
                'currency': 'USDM',
            };
        }
        return this.safeTrade ({
            'id': this.safeString (trade, 'fill_id'),
            'timestamp': timestamp,
            'datetime': this.iso8601 (timestamp),
            'symbol': market['symbol'],
            'order': this.safeString (trade, 'order_id'),
            'type': undefined,
            'side': side,
            'takerOrMaker': takerOrMaker,
            'price': this.safeE18 (trade, 'price'),
            'amount': quantity,
            'cost': undefined,
            'fee': fee,
            'info': trade,
        }, market);
    }

    parseSide (side: Str): Str {
        return (side === 'LONG') ? 'buy' : 'sell';
    }

    async fetchOHLCV (symbol: string, timeframe: string = '1m', since: Int = undefined, limit: Int = undefined, params = {}): Promise<OHLCV[]> {
        await this.loadMarkets ();
        const market = this.market (symbol);
        const request: Dict = {
            'market_id': market['id'],
            'interval': this.safeString (this.timeframes, timeframe, timeframe),
        };
        const price = this.safeString (params, 'price');
        if (price === 'mark') {
            request['price_type'] = 'mark';
        } else if (price === 'index') {
            request['price_type'] = 'oracle';
        }
        params = this.omit (params, 'price');
        const until = this.safeInteger (params, 'until');
        if ((since !== undefined) && (limit !== undefined) && (until === undefined)) {
            // the first candles from `since` on, not the newest
            params['until'] = this.sum (since, limit * this.parseTimeframe (timeframe) * 1000);
        }
        const response = await this.publicGetMarketsMarketIdCandlesticks (this.rangeRequest (request, since, limit, params));
        return this.parseOHLCVs (this.safeList (response, 'candles', []), market, timeframe, since, limit);
    }

    parseOHLCV (ohlcv, market: Market = undefined): OHLCV {
        return [
            this.parse8601 (this.safeString (ohlcv, 'start')),
            this.safeNumber (ohlcv, 'open'),
            this.safeNumber (ohlcv, 'high'),
            this.safeNumber (ohlcv, 'low'),
            this.safeNumber (ohlcv, 'close'),
            this.safeNumber (ohlcv, 'volume'),
        ];
    }

    async fetchFundingRate (symbol: string, params = {}): Promise<FundingRate> {
        await this.loadMarkets ();
        const market = this.market (symbol);
        if (!market['swap']) {
            throw new BadSymbol (this.id + ' fetchFundingRate() supports perpetual markets only, not ' + symbol);
        }
        const response = await this.publicGetMarketsMarketId (this.extend ({ 'market_id': market['id'] }, params));
        return this.parseFundingRate (response, market);
    }

    async fetchFundingRates (symbols: Strings = undefined, params = {}): Promise<FundingRates> {
        await this.loadMarkets ();
        symbols = this.marketSymbols (symbols);
        const response = await this.publicGetMarkets (this.extend ({ 'type': 'perpetual' }, params));
        return this.parseFundingRates (response, symbols);
    }

    parseFundingRate (contract, market: Market = undefined): FundingRate {
        market = this.safeMarket (this.safeString (contract, 'market_id'), market);
        const funding = this.safeDict (contract, 'funding', {});
        const timestamp = this.parse8601 (this.safeString (funding, 'effective_at'));
        const next = this.parse8601 (this.safeString (funding, 'next_update_at'));
        return {
            'info': contract,
            'symbol': market['symbol'],
            'markPrice': this.safeNumber (contract, 'mark_price'),
            'indexPrice': this.safeNumber (contract, 'oracle_price'),
            'interestRate': undefined,
            'estimatedSettlePrice': undefined,
            'timestamp': timestamp,
            'datetime': this.iso8601 (timestamp),
            'fundingRate': this.safeNumber (funding, 'funding_rate'),
            'fundingTimestamp': timestamp,
            'fundingDatetime': this.iso8601 (timestamp),
            'nextFundingRate': this.safeNumber (funding, 'predicted_rate'),
            'nextFundingTimestamp': next,
            'nextFundingDatetime': this.iso8601 (next),
            'previousFundingRate': undefined,
            'previousFundingTimestamp': undefined,
            'previousFundingDatetime': undefined,
            'interval': undefined,
        } as FundingRate;
    }

    async fetchFundingRateHistory (symbol: Str = undefined, since: Int = undefined, limit: Int = undefined, params = {}): Promise<FundingRateHistory[]> {
        if (symbol === undefined) {
            throw new ArgumentsRequired (this.id + ' fetchFundingRateHistory() requires a symbol argument');
        }
        await this.loadMarkets ();
        const market = this.market (symbol);
        const request: Dict = {
            'market_id': market['id'],
        };
        const response = await this.publicGetMarketsMarketIdFundingRates (this.rangeRequest (request, since, limit, params));
        const rates = this.safeList (response, 'funding_rates', []);
        const result = [];
        for (let i = 0; i < rates.length; i++) {
            const rate = rates[i];
            const timestamp = this.parse8601 (this.safeString (rate, 'effective_at'));
            result.push ({
                'info': rate,
                'symbol': market['symbol'],
                'fundingRate': this.safeNumber (rate, 'funding_rate'),
                'timestamp': timestamp,
                'datetime': this.iso8601 (timestamp),
            });
        }
        const sorted = this.sortBy (result, 'timestamp');
        return this.filterBySymbolSinceLimit (sorted, market['symbol'], since, limit) as FundingRateHistory[];
    }

    async fetchOpenInterest (symbol: string, params = {}): Promise<OpenInterest> {
        await this.loadMarkets ();
        const market = this.market (symbol);
        const response = await this.publicGetMarketsStats (params);
        for (let i = 0; i < response.length; i++) {
            const stats = response[i];
            if (this.safeString (stats, 'market_id') === market['id']) {
                return this.parseOpenInterest (stats, market);
            }
        }
        throw new BadSymbol (this.id + ' fetchOpenInterest() found no statistics of ' + symbol);
    }

    async fetchOpenInterestHistory (symbol: string, timeframe: string = '1h', since: Int = undefined, limit: Int = undefined, params = {}): Promise<OpenInterest[]> {
        await this.loadMarkets ();
        const market = this.market (symbol);
        const request: Dict = {
            'market_id': market['id'],
            'interval': this.safeString (this.timeframes, timeframe, timeframe),
        };
        const response = await this.publicGetMarketsMarketIdOpenInterest (this.rangeRequest (request, since, limit, params));
        return this.parseOpenInterestsHistory (this.safeList (response, 'open_interest', []), market, since, limit);
    }

    parseOpenInterest (interest, market: Market = undefined): OpenInterest {
        const timestamp = this.parse8601 (this.safeString (interest, 'start'));
        return this.safeOpenInterest ({
            'symbol': market['symbol'],
            'openInterestAmount': this.safeNumber (interest, 'open_interest'),
            'openInterestValue': this.safeNumber (interest, 'open_interest_notional'),
            'timestamp': timestamp,
            'datetime': this.iso8601 (timestamp),
            'info': interest,
        }, market);
    }

    async fetchTradingFees (params = {}): Promise<TradingFees> {
        await this.loadMarkets (true);
        const result: Dict = {};
        for (let i = 0; i < this.symbols.length; i++) {
            const symbol = this.symbols[i];
            result[symbol] = this.feeOfMarket (this.market (symbol));
        }
        return result as TradingFees;
    }

    async fetchTradingFee (symbol: string, params = {}) {
        await this.loadMarkets (true);
        return this.feeOfMarket (this.market (symbol));
    }

    feeOfMarket (market) {
        return {
            'info': this.safeDict (market['info'], 'fees'),
            'symbol': market['symbol'],
            'maker': market['maker'],
            'taker': market['taker'],
            'percentage': true,
            'tierBased': false,
        };
    }

    async loadUserId () {
        let userId = this.safeString (this.options, 'userId');
        if (userId === undefined) {
            const response = await this.privateGetMe ();
            userId = this.safeString (response, 'user_id');
            this.options['userId'] = userId;
        }
        return userId;
    }

    async fetchBalance (params = {}): Promise<Balances> {
        const request: Dict = {
            'user_id': await this.loadUserId (),
        };
        const response = await this.privateGetBalanceUserIdMargin (this.extend (this.readAfter (request), params));
        const balance = this.safeDict (response, 'balance', {});
        const account = this.account ();
        account['free'] = this.safeE18 (balance, 'available');
        account['total'] = this.safeE18 (balance, 'total');
        return this.safeBalance ({
            'info': response,
            'USDM': account,
        });
    }

    async fetchPositions (symbols: Strings = undefined, params = {}): Promise<Position[]> {
        await this.loadMarkets ();
        symbols = this.marketSymbols (symbols);
        const request: Dict = {
            'user_id': await this.loadUserId (),
        };
        const response = await this.privateGetPositionsByUserUserId (this.extend (this.readAfter (request), params));
        const positions = this.parsePositions (this.safeList (response, 'positions', []), symbols);
        const open = [];
        for (let i = 0; i < positions.length; i++) {
            if (positions[i]['contracts'] > 0) {
                open.push (positions[i]);
            }
        }
        return open;
    }

    async fetchPosition (symbol: string, params = {}): Promise<Position> {
        await this.loadMarkets ();
        const market = this.market (symbol);
        const positions = await this.fetchPositions ([ symbol ], this.extend ({ 'market_id': market['id'] }, params));
        return this.safeValue (positions, 0) as Position;
    }

    async fetchPositionsForSymbol (symbol: string, params = {}): Promise<Position[]> {
        return await this.fetchPositions ([ symbol ], params);
    }

    parsePosition (position: Dict, market: Market = undefined): Position {
        market = this.safeMarket (this.safeString (position, 'market_id'), market);
        const timestamp = this.parse8601 (this.safeString (position, 'updated_at'));
        const size = this.safeE18 (position, 'size');
        const margin = this.safeE18 (position, 'margin');
        return this.safePosition ({
            'info': position,
            'id': undefined,
            'symbol': market['symbol'],
            'entryPrice': this.safeNumber (position, 'entry_price'),
            'markPrice': this.safeNumber (position, 'mark_price'),
            'lastPrice': undefined,
            'notional': this.parseNumber (Precise.stringAbs (this.safeE18 (position, 'notional'))),
            'collateral': this.parseNumber (margin),
            'unrealizedPnl': this.safeNumber (position, 'unrealized_pnl'),
            'realizedPnl': this.safeNumber (position, 'realized_pnl'),
            'side': this.safeStringLower (position, 'side'),
            'contracts': this.parseNumber (Precise.stringAbs (size)),
            'contractSize': this.parseNumber ('1'),
            'timestamp': timestamp,
            'datetime': this.iso8601 (timestamp),
            'hedged': false,
            'maintenanceMargin': undefined,
            'maintenanceMarginPercentage': this.safeNumber (market['info'], 'maintenance_margin_requirement'),
            'initialMargin': this.parseNumber (margin),
            'initialMarginPercentage': undefined,
            'leverage': this.safeNumber (position, 'leverage'),
            'liquidationPrice': this.safeNumber (position, 'liquidation_price'),
            'marginRatio': undefined,
            'marginMode': 'isolated',
            'percentage': undefined,
        });
    }

    async fetchLeverage (symbol: string, params = {}): Promise<Leverage> {
        await this.loadMarkets ();
        const market = this.market (symbol);
        const position = await this.fetchPosition (symbol, params);
        const leverage = this.safeInteger (position, 'leverage', this.leverageOf (market));
        return {
            'info': position,
            'symbol': market['symbol'],
            'marginMode': 'isolated',
            'longLeverage': leverage,
            'shortLeverage': leverage,
        } as Leverage;
    }

    leverageOf (market): Int {
        return this.safeInteger (this.options['leverages'], market['symbol'], this.safeInteger (this.options, 'defaultLeverage', 1));
    }

    async setLeverage (leverage: int, symbol: Str = undefined, params = {}) {
        // every order carries its leverage: the exchange stores none
        if (symbol === undefined) {
            throw new ArgumentsRequired (this.id + ' setLeverage() requires a symbol argument');
        }
        await this.loadMarkets ();
        const market = this.market (symbol);
        const max = this.safeInteger (market['limits']['leverage'], 'max');
        if ((leverage < 1) || (leverage > max)) {
            throw new BadRequest (this.id + ' setLeverage() of ' + symbol + ' must be between 1 and ' + this.numberToString (max));
        }
        this.options['leverages'][market['symbol']] = leverage;
        return { 'symbol': market['symbol'], 'leverage': leverage };
    }

    async addMargin (symbol: string, amount: number, params = {}): Promise<MarginModification> {
        return await this.modifyMarginHelper (symbol, this.numberToString (amount), 'add', params);
    }

    async reduceMargin (symbol: string, amount: number, params = {}): Promise<MarginModification> {
        return await this.modifyMarginHelper (symbol, '-' + this.numberToString (amount), 'reduce', params);
    }

    async modifyMarginHelper (symbol: string, amount: string, type: string, params = {}): Promise<MarginModification> {
        await this.loadMarkets ();
        const market = this.market (symbol);
        const nonce = this.nextSalt ();
        const deadline = this.sum (this.seconds (), this.safeInteger (this.options, 'adjustmentLifetime', 60));
        const messageTypes: Dict = {
            'AdjustMargin': [
                { 'name': 'account', 'type': 'address' },
                { 'name': 'amount', 'type': 'int256' },
                { 'name': 'removeMode', 'type': 'uint8' },
                { 'name': 'minAmount', 'type': 'uint256' },
                { 'name': 'nonce', 'type': 'uint256' },
                { 'name': 'deadline', 'type': 'uint256' },
            ],
        };
        const message: Dict = {
            'account': this.walletAddress,
            'amount': this.toE18 (amount),
            'removeMode': 0,
            'minAmount': '0',
            'nonce': nonce.toString (),
            'deadline': deadline.toString (),
        };
        const request: Dict = {
            'symbol': market['info']['symbol'],
            'market_id': this.parseToInt (market['id']),
            'address': this.walletAddress,
            'amount': this.parseNumber (amount),
            'nonce': nonce,
            'deadline': deadline,
            'signature': this.signTyped (market, messageTypes, message),
        };
        const response = this.rememberWrite (await this.privatePostAccountAdjustMargin (this.extend (request, params)));
        return {
            'info': response,
            'symbol': market['symbol'],
            'type': type,
            'marginMode': 'isolated',
            'amount': this.parseNumber (Precise.stringAbs (this.safeE18 (response, 'amount'))),
            'total': undefined,
            'code': 'USDM',
            'status': 'ok',
            'timestamp': undefined,
            'datetime': undefined,
        } as MarginModification;
    }

    toE18 (amount: string): string {
        return Precise.stringMul (amount, '1000000000000000000');
    }

    nextSalt (): Int {
        // consecutive and used once: the millisecond times 1024, below 2^53
        const last = this.safeInteger (this.options, 'lastSalt', 0);
        const salt = Math.max (this.milliseconds () * 1024, last + 1);
        this.options['lastSalt'] = salt;
        return salt;
    }

    signTyped (market, messageTypes: Dict, message: Dict): string {
        const info = market['info'];
        const domain: Dict = {
            'name': 'IsolatedTrader',
            'version': '2.0',
            'chainId': this.safeInteger (info, 'chain_id'),
            'verifyingContract': this.safeString (info, 'trader_address'),
        };
        const encoded = this.ethEncodeStructuredData (domain, messageTypes, message);
        const digest = this.hash (encoded, keccak, 'hex');
        // "\x19Ethereum Signed Message:\n32"
        const prefix = this.base16ToBinary ('19457468657265756d205369676e6564204d6573736167653a0a3332');
        const personal = this.hash (this.binaryConcat (prefix, this.base16ToBinary (digest)), keccak, 'hex');
        const signature = ecdsa (personal.slice (-64), this.remove0xPrefix (this.privateKey), secp256k1, undefined);
        const v = this.intToBase16 (this.sum (27, signature['v']));
        // the last byte selects the verification as a personal message
        return '0x' + signature['r'].padStart (64, '0') + signature['s'].padStart (64, '0') + v + '01';
    }

    priceForSide (market, side: Str, price: string): string {
        // the nearest price of the grid that is not worse for the trader: a buy rounds down, a sell up
        const tick = this.numberToString (market['precision']['price']);
        const below = Precise.stringMul (Precise.stringDiv (price, tick, 0), tick);
        if ((side === 'sell') && Precise.stringLt (below, price)) {
            return Precise.stringAdd (below, tick);
        }
        return below;
    }

    orderKind (type: string, triggerPrice: Str, stopLossPrice: Str, takeProfitPrice: Str): string {
        const execution = (type === 'market') ? 'MARKET' : 'LIMIT';
        if (stopLossPrice !== undefined) {
            return 'STOP_LOSS_' + execution;
        }
        if (takeProfitPrice !== undefined) {
            return 'TAKE_PROFIT_' + execution;
        }
        if (triggerPrice !== undefined) {
            return 'STOP_' + execution;
        }
        return execution;
    }

    triggerCondition (kind: string, side: string): int {
        // 1: the mark price is at or above the trigger, 2: at or below
        if ((kind === 'MARKET') || (kind === 'LIMIT')) {
            return 0;
        }
        const isBuy = (side === 'buy');
        const isTakeProfit = (kind.indexOf ('TAKE_PROFIT') === 0);
        return (isBuy !== isTakeProfit) ? 1 : 2;
    }

    createOrderRequest (symbol: string, type: OrderType, side: OrderSide, amount: number, price: Num = undefined, params = {}): Dict {
        const market = this.market (symbol);
        if ((type !== 'market') && (type !== 'limit')) {
            throw new InvalidOrder (this.id + ' createOrder() supports the types market and limit, not ' + type);
        }
        let timeInForce = this.safeStringUpper (params, 'timeInForce', 'GTC');
        const postOnly = this.safeBool (params, 'postOnly', false) || (timeInForce === 'PO');
        if (timeInForce === 'PO') {
            timeInForce = 'GTC';
        }
        if ((timeInForce !== 'GTC') && (timeInForce !== 'GTD') && (timeInForce !== 'IOC')) {
            throw new NotSupported (this.id + ' createOrder() does not support timeInForce ' + timeInForce + ': orders meet in batch auctions');
        }
        const stopLossPrice = this.safeString (params, 'stopLossPrice');
        const takeProfitPrice = this.safeString (params, 'takeProfitPrice');
        const triggerPrice = this.safeStringN (params, [ 'triggerPrice', 'stopPrice' ]);
        const kind = this.orderKind (type, triggerPrice, stopLossPrice, takeProfitPrice);
        let trigger = '0';
        if (stopLossPrice !== undefined) {
            trigger = this.priceToPrecision (symbol, stopLossPrice);
        } else if (takeProfitPrice !== undefined) {
            trigger = this.priceToPrecision (symbol, takeProfitPrice);
        } else if (triggerPrice !== undefined) {
            trigger = this.priceToPrecision (symbol, triggerPrice);
        }
        let limit = '0';
        if (type === 'limit') {
            if (price === undefined) {
                throw new ArgumentsRequired (this.id + ' createOrder() requires a price argument for limit orders');
            }
            limit = this.priceForSide (market, side, this.numberToString (price));
        }
        const isExit = (stopLossPrice !== undefined) || (takeProfitPrice !== undefined);
        const reduceOnly = isExit || this.safeBool (params, 'reduceOnly', false);
        let expiration = this.safeInteger (params, 'expirationSeconds', 0);
        if (kind === 'MARKET') {
            const latest = this.sum (this.seconds (), this.safeInteger (this.options, 'marketOrderLifetime', 60));
            expiration = (expiration === 0) ? latest : Math.min (expiration, latest);
        }
        const leverage = this.safeInteger (params, 'leverage', this.leverageOf (market));
        const quantity = this.toE18 (this.amountToPrecision (symbol, amount));
        const salt = this.safeInteger (params, 'salt', this.nextSalt ());
        const bits = this.sum ((side === 'buy') ? 1 : 0, reduceOnly ? 2 : 0);
        const flags = '0x' + (this.intToBase16 (salt) + bits.toString ()).padStart (16, '0');
        const messageTypes: Dict = {
            'Order': [
                { 'name': 'flags', 'type': 'bytes8' },
                { 'name': 'quantity', 'type': 'uint128' },
                { 'name': 'price', 'type': 'uint128' },
                { 'name': 'triggerPrice', 'type': 'uint128' },
                { 'name': 'triggerCondition', 'type': 'uint8' },
                { 'name': 'leverage', 'type': 'uint128' },
                { 'name': 'maker', 'type': 'address' },
                { 'name': 'expiration', 'type': 'uint128' },
            ],
        };
        const message: Dict = {
            'flags': flags,
            'quantity': quantity,
            'price': this.toE18 (limit),
            'triggerPrice': this.toE18 (trigger),
            'triggerCondition': this.triggerCondition (kind, side),
            'leverage': this.toE18 (leverage.toString ()),
            'maker': this.walletAddress,
            'expiration': expiration.toString (),
        };
        const request: Dict = {
            'market_id': this.parseToInt (market['id']),
            'side': (side === 'buy') ? 'LONG' : 'SHORT',
            'order_type': kind,
            'quantity_e18_raw': quantity,
            'leverage': leverage,
            'expiration_seconds': expiration,
            'reduce_only': reduceOnly,
            'salt': salt.toString (),
            'signature': this.signTyped (market, messageTypes, message),
            'signature_type': 1,
        };
        if (limit !== '0') {
            request['price'] = limit;
        }
        if (trigger !== '0') {
            request['trigger_price'] = trigger;
        }
        const clientOrderId = this.safeString (params, 'clientOrderId');
        if (clientOrderId !== undefined) {
            request['client_order_id'] = clientOrderId;
        }
        // a market order takes part in one auction anyway
        if ((timeInForce === 'IOC') && (kind !== 'MARKET')) {
            request['time_in_force'] = 'ioc';
        }
        if (postOnly) {
            request['post_only'] = true;
        }
        const bracketId = this.safeInteger (params, 'bracketId');
        if (bracketId !== undefined) {
            request['bracket_id'] = bracketId;
        }
        const own = [ 'timeInForce', 'postOnly', 'bracketId', 'stopLossPrice', 'takeProfitPrice', 'triggerPrice', 'stopPrice', 'reduceOnly', 'expirationSeconds', 'leverage', 'salt', 'clientOrderId' ];
        return this.extend (request, this.omit (params, own));
    }

    async createOrder (symbol: string, type: OrderType, side: OrderSide, amount: number, price: Num = undefined, params = {}): Promise<Order> {
        await this.loadMarkets ();
        const request = this.createOrderRequest (symbol, type, side, amount, price, params);
        const response = this.rememberWrite (await this.privatePostOrders (request));
        return this.parseOrder (this.safeDict (response, 'order'));
    }

    async createOrders (orders: OrderRequest[], params = {}): Promise<Order[]> {
        await this.loadMarkets ();
        const requests = [];
        for (let i = 0; i < orders.length; i++) {
            const order = orders[i];
            requests.push (this.createOrderRequest (this.safeString (order, 'symbol'), this.safeString (order, 'type'), this.safeString (order, 'side'), this.safeNumber (order, 'amount'), this.safeNumber (order, 'price'), this.safeDict (order, 'params', {})));
        }
        const request: Dict = {
            'client_request_id': this.safeString (params, 'clientRequestId', this.uuid ()),
            'mode': this.safeString (params, 'mode', 'best_effort'),
            'orders': requests,
        };
        const response = this.rememberWrite (await this.privatePostOrdersPlaceBatch (this.extend (request, this.omit (params, [ 'clientRequestId', 'mode' ]))));
        const results = this.safeList (response, 'results', []);
        const placed = [];
        for (let i = 0; i < results.length; i++) {
            const result = results[i];
            const order = this.safeDict (result, 'order');
            if (order !== undefined) {
                placed.push (this.parseOrder (order));
            } else {
                // refused alone
                placed.push (this.safeOrder ({ 'info': result, 'status': 'rejected', 'symbol': this.safeString (orders[i], 'symbol') }));
            }
        }
        return placed;
    }

    async editOrder (id: string, symbol: string, type: OrderType, side: OrderSide, amount: Num = undefined, price: Num = undefined, params = {}): Promise<Order> {
        await this.loadMarkets ();
        const oldClientOrderId = this.safeString (params, 'oldClientOrderId');
        const ifFilled = this.safeString (params, 'ifFilled');
        params = this.omit (params, [ 'oldClientOrderId', 'ifFilled' ]);
        const cancel: Dict = {};
        if (oldClientOrderId !== undefined) {
            cancel['client_order_id'] = oldClientOrderId;
        } else {
            cancel['order_hash'] = await this.orderHashOf (id);
        }
        const request: Dict = {
            'cancel': cancel,
            'order': this.createOrderRequest (symbol, type, side, amount, price, params),
        };
        if (ifFilled !== undefined) {
            request['if_filled'] = ifFilled;
        }
        const response = this.rememberWrite (await this.privatePostOrdersReplace (request));
        return this.parseOrder (this.safeDict (response, 'order'));
    }

    async cancelOrder (id: string, symbol: Str = undefined, params = {}): Promise<Order> {
        await this.loadMarkets ();
        const clientOrderId = this.safeString (params, 'clientOrderId');
        params = this.omit (params, 'clientOrderId');
        let response = undefined;
        if (clientOrderId !== undefined) {
            response = await this.privatePostOrdersCancelByClientIdClientOrderId (this.extend ({ 'client_order_id': clientOrderId }, params));
        } else {
            const hash = await this.orderHashOf (id);
            response = await this.privatePostOrdersCancelByHashOrderHash (this.extend ({ 'order_hash': hash }, params));
        }
        this.rememberWrite (response);
        return this.parseOrder (this.safeDict (response, 'order'));
    }

    async orderHashOf (id: string) {
        // orders are cancelled by their hash
        if (id.indexOf ('0x') === 0) {
            return id;
        }
        const order = await this.privateGetOrdersOrderId ({ 'order_id': id });
        return this.safeString (order, 'order_hash');
    }

    async cancelOrders (ids: string[], symbol: Str = undefined, params = {}): Promise<Order[]> {
        await this.loadMarkets ();
        const hashes = [];
        for (let i = 0; i < ids.length; i++) {
            hashes.push (await this.orderHashOf (ids[i]));
        }
        const request: Dict = {
            'client_request_id': this.safeString (params, 'clientRequestId', this.uuid ()),
            'orderHashes': hashes,
        };
        const response = await this.privatePostOrdersCancelBatch (this.extend (request, this.omit (params, 'clientRequestId')));
        return this.ordersOfResults (response);
    }

    async cancelAllOrders (symbol: Str = undefined, params = {}): Promise<Order[]> {
        await this.loadMarkets ();
        const request: Dict = {};
        if (symbol !== undefined) {
            request['market_id'] = this.parseToInt (this.market (symbol)['id']);
        }
        const response = await this.privatePostOrdersCancelAll (this.extend (request, params));
        return this.ordersOfResults (response);
    }

    ordersOfResults (response): Order[] {
        this.rememberWrite (response);
        const results = this.safeList (response, 'results', []);
        const orders = [];
        for (let i = 0; i < results.length; i++) {
            const order = this.safeDict (results[i], 'order');
            if (order !== undefined) {
                orders.push (this.parseOrder (order));
            }
        }
        return orders;
    }

    async cancelAllOrdersAfter (timeout: Int, params = {}) {
        const request: Dict = {
            'timeout_seconds': (timeout > 0) ? this.parseToInt (timeout / 1000) : 0,
        };
        return await this.privatePostOrdersCancelAllAfter (this.extend (request, params));
    }

    async closePosition (symbol: string, side: OrderSide = undefined, params = {}): Promise<Order> {
        const position = await this.fetchPosition (symbol);
        if (position === undefined) {
            throw new OperationRejected (this.id + ' closePosition() found no position in ' + symbol);
        }
        const closing = (position['side'] === 'long') ? 'sell' : 'buy';
        const amount = this.safeNumber (params, 'amount', position['contracts']);
        const terms = this.extend ({ 'reduceOnly': true, 'leverage': position['leverage'] }, this.omit (params, 'amount'));
        const request = this.createOrderRequest (symbol, 'market', closing, amount, undefined, terms);
        // the exchange closes at most the position that the auction finds
        const response = this.rememberWrite (await this.privatePostPositionsClose (request));
        return this.parseOrder (this.safeDict (response, 'order'));
    }

    async fetchOrder (id: string, symbol: Str = undefined, params = {}): Promise<Order> {
        await this.loadMarkets ();
        const clientOrderId = this.safeString (params, 'clientOrderId');
        params = this.omit (params, 'clientOrderId');
        let response = undefined;
        if (clientOrderId !== undefined) {
            response = await this.privateGetOrdersByClientIdClientOrderId (this.extend (this.readAfter ({ 'client_order_id': clientOrderId }), params));
        } else {
            response = await this.privateGetOrdersOrderId (this.extend (this.readAfter ({ 'order_id': id }), params));
        }
        return this.parseOrder (response);
    }

    async fetchOrders (symbol: Str = undefined, since: Int = undefined, limit: Int = undefined, params = {}): Promise<Order[]> {
        await this.loadMarkets ();
        const request: Dict = {
            'user_id': await this.loadUserId (),
        };
        let market = undefined;
        if (symbol !== undefined) {
            market = this.market (symbol);
            request['market_id'] = market['id'];
        }
        const response = await this.privateGetOrdersByUserUserId (this.rangeRequest (this.readAfter (request), since, limit, params));
        return this.parseOrders (this.safeList (response, 'orders', []), market, since, limit);
    }

    async fetchOpenOrders (symbol: Str = undefined, since: Int = undefined, limit: Int = undefined, params = {}): Promise<Order[]> {
        const open = await this.fetchOrders (symbol, since, limit, this.extend ({ 'status': 'OPEN' }, params));
        const waiting = await this.fetchOrders (symbol, since, limit, this.extend ({ 'status': 'PENDING_TRIGGER' }, params));
        const ending = await this.fetchOrders (symbol, since, limit, this.extend ({ 'status': 'CANCEL_PENDING_FINALIZE' }, params));
        const all = this.arrayConcat (this.arrayConcat (open, waiting), ending);
        return this.filterBySinceLimit (this.sortBy (all, 'timestamp'), since, limit) as Order[];
    }

    async fetchClosedOrders (symbol: Str = undefined, since: Int = undefined, limit: Int = undefined, params = {}): Promise<Order[]> {
        return await this.fetchOrders (symbol, since, limit, this.extend ({ 'status': 'FILLED' }, params));
    }

    async fetchCanceledOrders (symbol: Str = undefined, since: Int = undefined, limit: Int = undefined, params = {}): Promise<Order[]> {
        return await this.fetchOrders (symbol, since, limit, this.extend ({ 'status': 'CANCELLED' }, params));
    }

    async fetchMyTrades (symbol: Str = undefined, since: Int = undefined, limit: Int = undefined, params = {}): Promise<Trade[]> {
        await this.loadMarkets ();
        const request: Dict = {
            'user_id': await this.loadUserId (),
        };
        let market = undefined;
        if (symbol !== undefined) {
            market = this.market (symbol);
            request['market_id'] = market['id'];
        }
        const response = await this.privateGetFillsByUserUserId (this.rangeRequest (this.readAfter (request), since, limit, params));
        return this.parseTrades (this.safeList (response, 'fills', []), market, since, limit);
    }

    async fetchOrderTrades (id: string, symbol: Str = undefined, since: Int = undefined, limit: Int = undefined, params = {}): Promise<Trade[]> {
        await this.loadMarkets ();
        const response = await this.privateGetOrdersOrderIdFills (this.rangeRequest (this.readAfter ({ 'order_id': id }), since, limit, params));
        return this.parseTrades (this.safeList (response, 'fills', []), undefined, since, limit);
    }

    async fetchFundingHistory (symbol: Str = undefined, since: Int = undefined, limit: Int = undefined, params = {}): Promise<FundingHistory[]> {
        await this.loadMarkets ();
        const request: Dict = {
            'transaction_type': 'funding_payment',
        };
        if (symbol !== undefined) {
            request['market_id'] = this.market (symbol)['id'];
        }
        const response = await this.privateGetAccountTransactions (this.rangeRequest (this.readAfter (request), since, limit, params));
        const transactions = this.safeList (response, 'transactions', []);
        const result = [];
        for (let i = 0; i < transactions.length; i++) {
            const transaction = transactions[i];
            const timestamp = this.parse8601 (this.safeString (transaction, 'created_at'));
            result.push ({
                'info': transaction,
                'symbol': this.safeSymbol (this.safeString (transaction, 'market_id')),
                'code': 'USDM',
                'timestamp': timestamp,
                'datetime': this.iso8601 (timestamp),
                'id': this.safeString (transaction, 'id'),
                'amount': this.parseNumber (this.safeE18 (transaction, 'amount')),
            });
        }
        return this.filterBySinceLimit (this.sortBy (result, 'timestamp'), since, limit) as FundingHistory[];
    }

    parseOrderStatus (status: Str): Str {
        const statuses: Dict = {
            'OPEN': 'open',
            'PENDING_TRIGGER': 'open',
            'CANCEL_PENDING_FINALIZE': 'canceling',
            'FILLED': 'closed',
            'CANCELLED': 'canceled',
            'EXPIRED': 'expired',
        };
        return this.safeString (statuses, status, status);
    }

    omitZeroE18 (order, key: string): Str {
        return this.omitZero (this.safeE18 (order, key));
    }

    parseOrder (order: Dict, market: Market = undefined): Order {
        market = this.safeMarket (this.safeString (order, 'market_id'), market);
        const timestamp = this.parse8601 (this.safeString (order, 'created_at'));
        const updated = this.parse8601 (this.safeString (order, 'updated_at'));
        const kind = this.safeString (order, 'order_type', '');
        const trigger = this.omitZeroE18 (order, 'trigger_price');
        const isStopLoss = (kind.indexOf ('STOP_LOSS') === 0);
        const isTakeProfit = (kind.indexOf ('TAKE_PROFIT') === 0);
        const isMarket = (kind.indexOf ('MARKET') >= 0);
        const filled = this.safeE18 (order, 'filled_quantity');
        return this.safeOrder ({
            'info': order,
            'id': this.safeString (order, 'order_id'),
            'clientOrderId': this.safeString (order, 'client_order_id'),
            'timestamp': timestamp,
            'datetime': this.iso8601 (timestamp),
            'lastTradeTimestamp': undefined,
            'lastUpdateTimestamp': updated,
            'symbol': market['symbol'],
            'type': isMarket ? 'market' : 'limit',
            'timeInForce': (kind === 'MARKET') ? 'IOC' : this.safeStringUpper (order, 'time_in_force', 'GTC'),
            'postOnly': this.safeBool (order, 'post_only', false),
            'reduceOnly': this.safeBool (order, 'reduce_only'),
            'side': this.parseSide (this.safeString (order, 'side')),
            'price': this.omitZeroE18 (order, 'price'),
            'triggerPrice': trigger,
            'stopLossPrice': isStopLoss ? trigger : undefined,
            'takeProfitPrice': isTakeProfit ? trigger : undefined,
            'amount': this.safeE18 (order, 'quantity'),
            'filled': filled,
            'remaining': undefined,
            'cost': undefined,
            'average': this.omitZeroE18 (order, 'average_price'),
            'status': this.parseOrderStatus (this.safeString (order, 'status')),
            'fee': {
                'cost': this.safeE18 (order, 'fee'),
                'currency': 'USDM',
            },
            'trades': undefined,
        }, market);
    }

    sign (path, api = 'public', method = 'GET', params = {}, headers = undefined, body = undefined) {
        const query = this.omit (params, this.extractParams (path));
        let url = this.implodeHostname (this.urls['api']['rest']) + '/' + this.version + '/' + this.implodeParams (path, params);
        headers = { 'Accept': 'application/json' };
        if (api === 'private') {
            this.requireApiKey ();
            headers['Authorization'] = 'Key ' + this.apiKey;
        }
        if (method === 'POST') {
            headers['Content-Type'] = 'application/json';
            body = this.json (query);
        } else if (Object.keys (query).length > 0) {
            url = url + '?' + this.urlencode (query);
        }
        return { 'url': url, 'method': method, 'body': body, 'headers': headers };
    }

    requireApiKey () {
        // reads need no key of the wallet
        if ((this.apiKey === undefined) || (this.apiKey === '')) {
            throw new AuthenticationError (this.id + ' requires "apiKey" credential');
        }
    }

    handleErrors (httpCode: int, reason: string, url: string, method: string, headers: Dict, body: string, response, requestHeaders, requestBody) {
        if ((response === undefined) || (httpCode < 400)) {
            return undefined; // fallback to the default error handler
        }
        //
        //     {
        //         "message": "The price is not a multiple of the tick size.",
        //         "details": { "code": "TICK_SIZE", "field": "price", "outcome": "not_placed", "retryable": false }
        //     }
        //
        const details = this.safeDict (response, 'details', {});
        const code = this.safeString (details, 'code');
        if (code === undefined) {
            return undefined;
        }
        const feedback = this.id + ' ' + body;
        if (code === 'HTV1_READ_AFTER_STALE_BOOKMARK') {
            this.options['readAfter'] = undefined;
            throw new OperationFailed (feedback); // the same read succeeds without the bookmark
        }
        if (this.safeString (details, 'outcome') === 'unknown') {
            throw new RequestTimeout (feedback);
        }
        this.throwExactlyMatchedException (this.exceptions['exact'], code, feedback);
        if (httpCode === 429) {
            throw new RateLimitExceeded (feedback);
        }
        if (httpCode >= 500) {
            throw new ExchangeNotAvailable (feedback);
        }
        throw new ExchangeError (feedback);
    }
}
