// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IMarginBank} from "../../../contracts/interfaces/IMarginBank.sol";
import {MarketKind, MarketMode} from "../../../contracts/types/Market.sol";
import {Position} from "../../../contracts/types/Position.sol";
import {Report} from "../../../contracts/types/Report.sol";
import {OperatorHandler} from "./OperatorHandler.sol";
import {Listing} from "./ExchangeFixture.sol";
import {positionOf, referenceOf} from "./MarketStorage.sol";
import {holds, same, vm, within} from "./Vm.sol";

/// @title Steps besides trading: deposits and withdrawals, time, unauthorized calls
contract ExchangeHandler is OperatorHandler {
    uint256 private constant WITHDRAWAL_SECONDS = 16;

    uint256 public donated;
    uint256 public deposited = HOLDERS * START_BALANCE;
    uint256 public withdrawn;
    /// @dev Deposits less withdrawals of each actor.
    int256[ACTORS] private _paid;

    constructor(Listing memory listed) OperatorHandler(listed) {
        for (uint256 i; i < ACTORS; ++i) _paid[i] = int256(START_BALANCE);
    }

    // ------------------------------------------------------------------ steps

    function pass(uint256 seed) external {
        vm.warp(block.timestamp + within(seed, 0, 30));
    }

    function deposit(uint256 seed) external {
        uint256 amount = within(seed >> 8, 1, START_BALANCE / 10);
        token.mint(address(this), amount);
        bank.depositFor(actor(seed % ACTORS), amount);
        deposited += amount;
        _paid[seed % ACTORS] += int256(amount);
    }

    /// @notice Tokens transferred to the bank without credit to an account.
    function donate(uint256 seed) external {
        uint256 amount = within(seed, 1, 1e21);
        token.mint(address(bank), amount);
        donated += amount;
    }

    function requestWithdrawal(uint256 seed) external {
        address owner = actor(seed % ACTORS);
        uint256 free = bank.account(owner).free;
        if (free == 0) return;
        vm.prank(owner);
        bank.requestWithdrawal(within(seed >> 8, 1, free));
    }

    /// @notice withdrawalAlwaysPaid: whatever the market does, a pending amount is paid in full after the delay and not
    /// earlier.
    function withdraw(uint256 seed) external {
        address owner = actor(seed % ACTORS);
        IMarginBank.Account memory entry = bank.account(owner);
        if (entry.pending == 0) return;
        if (block.timestamp <= entry.requestedAt + WITHDRAWAL_SECONDS - 1) {
            vm.prank(owner);
            try bank.withdraw() {
                holds("no payout before the delay", false);
            } catch {}
            vm.warp(entry.requestedAt + WITHDRAWAL_SECONDS);
        }
        uint256 before = token.balanceOf(owner);
        vm.prank(owner);
        bank.withdraw();
        same("withdrawalAlwaysPaid", int256(uint256(entry.pending)), int256(token.balanceOf(owner) - before));
        withdrawn += entry.pending;
        _paid[seed % ACTORS] -= int256(uint256(entry.pending));
    }

    /// @notice windDownLiveness, claimOrderFree: without the operator, calls open to any account pay out every position. No
    /// account's share depends on the order of claims.
    function everyAccountExits() external {
        uint256[HOLDERS] memory due = _end();
        IMarginBank.Market memory market = bank.market(address(trader));
        uint256 paid;
        for (uint256 n; n < HOLDERS; ++n) {
            uint256 i = (n + settledParts) % HOLDERS;
            uint256 before = bank.account(holder(i)).free;
            // Reverts with NothingToClaim for an account without a claim.
            try trader.claim(holder(i)) {} catch {}
            same("claimOrderFree", int256(due[i]), int256(bank.account(holder(i)).free - before));
            paid += due[i];
        }
        holds("claims fit the pool", paid <= market.pool);
        for (uint256 i; i < ACTORS; ++i) _withdrawAll(actor(i));
    }

    function _freeze() private {
        trader.requestFreeze();
        vm.warp(block.timestamp + 1 days + 3);
        trader.freeze();
    }

    /// @dev Closes the market with a day's notice; its final price is reported, disputed by no report, and fixed.
    function _finalize() private {
        bool isPerpetual = listing.kind == MarketKind.Perpetual;
        uint256 closesAt = (block.timestamp + 1 days) * 1000;
        trader.scheduleMode(MarketMode.Settling, uint48(closesAt));
        vm.warp(closesAt / 1000);
        // 0 or 1 in a binary market, else twice or half of the last price.
        uint256 price = trader.lastReference().oraclePrice;
        price = _draws % 2 == 0 ? price * 2 : price / 2;
        if (listing.kind == MarketKind.BinaryFuture) price = (_draws % 2) * 1e18;
        bytes memory proof = _reportOn(isPerpetual ? FEED : FINAL_FEED, price, closesAt);
        trader.submitFinalReport(Report(uint96(price), uint48(closesAt), proof));
        vm.warp(block.timestamp + 1 days + 1);
        trader.finalizeMarket(uint256(trader.clock().actionId) + 1, block.timestamp * 1000);
    }

    /// @dev Ends the market in one of its two ways and reports the deficits. Returns the amount that each account may claim.
    function _end() private returns (uint256[HOLDERS] memory due) {
        // Without a batch no account has a position.
        if (trader.clock().batchId == 0) return due;
        if (_draws % 3 == 0) _freeze();
        else _finalize();
        address[] memory all = new address[](HOLDERS);
        int256[HOLDERS] memory value;
        uint256 deficit;
        uint256 price = trader.windDown().price;
        for (uint256 i; i < HOLDERS; ++i) {
            all[i] = holder(i);
            (int256 equityX,) = trader.health(all[i], price);
            value[i] = equityX / 1e18;
            if (equityX % 1e18 < 0) --value[i];
            if (value[i] < 0) deficit += uint256(-value[i]);
        }
        trader.reportInsolvent(all);
        uint256 pool = bank.market(address(trader)).pool;
        vm.warp(block.timestamp + 3 days + 1);
        for (uint256 i; i < HOLDERS; ++i) {
            if (value[i] > 0) due[i] = Math.mulDiv(uint256(value[i]), pool, pool + deficit);
        }
    }

    function _withdrawAll(address owner) private {
        IMarginBank.Account memory entry = bank.account(owner);
        uint256 all = uint256(entry.free) + entry.pending;
        if (entry.free != 0) {
            vm.prank(owner);
            bank.requestWithdrawal(entry.free);
        }
        if (all == 0) return;
        vm.warp(block.timestamp + WITHDRAWAL_SECONDS);
        uint256 before = token.balanceOf(owner);
        vm.prank(owner);
        bank.withdraw();
        same("windDownLiveness", int256(all), int256(token.balanceOf(owner) - before));
        withdrawn += all;
    }

    function collectFees(uint256) external {
        if (bank.market(address(trader)).fees != 0) bank.collectFees(address(trader));
    }

    /// @notice Calls reserved for the operator, the admin or a market, sent by an actor.
    function attemptUnauthorized(uint256 seed) external {
        address unauthorized = actor(seed % ACTORS);
        bytes[4] memory calls = [
            abi.encodeCall(trader.settleBatch, (hex"")),
            abi.encodeCall(bank.settleDeltas, (0, 0, new bytes32[](1))),
            abi.encodeCall(bank.listMarket, (address(token))),
            abi.encodeCall(trader.proposeOperator, (unauthorized))
        ];
        for (uint256 i; i < calls.length; ++i) {
            vm.prank(unauthorized);
            (bool done,) = (i == 1 || i == 2 ? address(bank) : address(trader)).call(calls[i]);
            holds("unauthorized calls revert", !done);
        }
    }

    // ------------------------------------------------------------------ sums

    /// @notice What the laws compare. Amounts x 1e18 at each of three prices.
    struct Totals {
        /// Tokens of the bank.
        int256 tokens;
        /// The bank's liabilities to accounts, market and treasury.
        int256 owed;
        int256 pool;
        int256 size;
        int256[3] equitiesX;
        /// Least equity of any account.
        int256[3] leastX;
        /// Most that any actor has above its payments: free and pending balance and equity, less deposits, plus withdrawals.
        int256[3] gainX;
    }

    /// @notice Sums over all accounts, computed from the market's storage. The views of one account, another one after every
    /// draw, must show the same.
    function totals(uint256[3] calldata prices) external view returns (Totals memory total) {
        IMarginBank.Market memory market = bank.market(address(trader));
        total.pool = int256(uint256(market.pool));
        total.tokens = int256(token.balanceOf(address(bank)));
        total.owed = total.pool + int256(uint256(market.fees)) + _ledger(address(this));
        total.gainX = [type(int256).min, type(int256).min, type(int256).min];
        int256 index = referenceOf(address(trader)).fundingIndex;
        uint256 viewed = _draws % HOLDERS;
        for (uint256 i; i < HOLDERS; ++i) {
            Position memory held = positionOf(address(trader), holder(i), index);
            _add(total, i, held, prices);
            if (i == viewed) _checkViews(holder(i), held, prices[_draws % prices.length]);
        }
    }

    /// @dev The equity of an account is linear in the price. No sum overflows: U8 in contracts/README.md bounds an equity.
    function _add(Totals memory total, uint256 index, Position memory held, uint256[3] calldata prices) private view {
        int256 ledger = _ledger(holder(index));
        int256 entry = int256(held.entryNotional);
        unchecked {
            int256 constantX = (held.size < 0 ? held.margin + entry : held.margin - entry) * 1e18;
            int256 slopeX = held.size * int256(listing.step);
            int256 paid = index == ACTORS ? type(int256).max / 1e18 : _paid[index];
            total.owed += ledger;
            total.size += held.size;
            for (uint256 n; n < 3; ++n) {
                int256 equityX = constantX + slopeX * int256(prices[n]);
                total.equitiesX[n] += equityX;
                if (equityX < total.leastX[n]) total.leastX[n] = equityX;
                int256 gainX = (ledger - paid) * 1e18 + equityX;
                if (gainX > total.gainX[n]) total.gainX[n] = gainX;
            }
        }
    }

    function _checkViews(address account, Position memory held, uint256 price) private view {
        holds("position shows the slot", keccak256(abi.encode(trader.position(account))) == keccak256(abi.encode(held)));
        (int256 equityX, int256 notionalX) = _exposure(held, price);
        (int256 shownEquityX, uint256 shownNotionalX) = trader.health(account, price);
        same("health shows the equity", equityX, shownEquityX);
        same("health shows the notional", notionalX, int256(shownNotionalX));
    }

    function _ledger(address account) private view returns (int256) {
        IMarginBank.Account memory entry = bank.account(account);
        return int256(uint256(entry.free)) + int256(uint256(entry.pending));
    }
}
