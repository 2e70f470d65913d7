// SPDX-License-Identifier: MIT
pragma solidity 0.8.36;

import {IIsolatedTrader} from "./interfaces/IIsolatedTrader.sol";
import {IMarginBank} from "./interfaces/IMarginBank.sol";
import {BackstopLib} from "./libraries/BackstopLib.sol";
import {DeleverageLib} from "./libraries/DeleverageLib.sol";
import {FundingLib} from "./libraries/FundingLib.sol";
import {MarginLib} from "./libraries/MarginLib.sol";
import {OrderLib} from "./libraries/OrderLib.sol";
import {PauseLib} from "./libraries/PauseLib.sol";
import {RiskLens} from "./libraries/RiskLens.sol";
import {SettlementCodec} from "./libraries/SettlementCodec.sol";
import {AccountRisk, EndingPreview, MarketTerms} from "./types/Lens.sol";
import {RecordBody, RecordHead} from "./types/OrderRecord.sol";
import {Position} from "./types/Position.sol";
import {DeleveragedLeg, Inheritance, RiskTerms, Valuation} from "./types/Risk.sol";
import {OrderFill, PartHeader} from "./types/Settlement.sol";

/**
 * @title Views over markets for keepers, indexers, auditors and tools
 * @notice Decodes packed parts with the decoder of `settleBatch`, and computes what an action would find or do with the libraries
 * of the markets. Prices are x 1e18 and not checked against a report; `asOf` is milliseconds. Holds no state and has no rights.
 */
contract SettlementLens {
    // ------------------------------------------------------------------ parts

    /// @notice Decodes the argument of `settleBatch`. Reverts if settlement would reject its header or its
    /// length.
    function decodePart(bytes calldata part)
        external
        pure
        returns (PartHeader memory header, OrderFill[] memory orders, bytes memory proof)
    {
        header = SettlementCodec.readHeader(part);
        orders = new OrderFill[](header.orders);
        uint256 next;
        assembly ("memory-safe") {
            next := add(part.offset, 64)
        }
        for (uint256 i; i < header.orders; ++i) {
            next = _read(next, orders[i]);
        }
        SettlementCodec.requireEnd(part, header.proofLength, next);
        proof = SettlementCodec.proofOf(part, header);
    }

    // ------------------------------------------------------------------ risk

    /// @notice The terms that an action with this `asOf` would find.
    function termsAt(IIsolatedTrader market, uint256 asOf) external view returns (MarketTerms memory) {
        return RiskLens.termsAt(market, asOf);
    }

    /// @notice The accounts at this oracle price, as of `asOf`.
    function risks(IIsolatedTrader market, address[] calldata accounts, uint256 price, uint256 asOf)
        external
        view
        returns (MarketTerms memory terms, AccountRisk[] memory found)
    {
        terms = RiskLens.termsAt(market, asOf);
        found = new AccountRisk[](accounts.length);
        for (uint256 i; i < accounts.length; ++i) {
            found[i] = RiskLens.riskOf(market, terms, accounts[i], price, asOf);
        }
    }

    /// @notice Those of the accounts that a forced order may close at this oracle price, as of `asOf`, in their order.
    function liquidatable(IIsolatedTrader market, address[] calldata accounts, uint256 price, uint256 asOf)
        external
        view
        returns (address[] memory found)
    {
        MarketTerms memory terms = RiskLens.termsAt(market, asOf);
        found = new address[](accounts.length);
        uint256 count;
        for (uint256 i; i < accounts.length; ++i) {
            if (RiskLens.riskOf(market, terms, accounts[i], price, asOf).liquidatable) found[count++] = accounts[i];
        }
        assembly ("memory-safe") {
            mstore(found, count)
        }
    }

    // ------------------------------------------------------------------ what an action would do

    /// @notice The range of rates that `updateFunding` would accept, and the index that it would start from.
    function previewFunding(IIsolatedTrader market, uint256 price, uint256 asOf)
        external
        view
        returns (int256 lowest, int256 highest, int256 fundingIndex)
    {
        MarketTerms memory terms = RiskLens.termsAt(market, asOf);
        int256 cap = FundingLib.capAt(terms.parameters.fundingCap, price, market.grid().step);
        (lowest, highest) = FundingLib.bounds(market.fundingRate(), cap, asOf);
        return (lowest, highest, terms.fundingIndex);
    }

    /// @notice What `inheritPosition` would do: the backstop's position afterwards, or why it cannot inherit. Reverts as the
    /// action would for an account that may not be inherited.
    function previewInheritance(IIsolatedTrader market, address account, uint256 price, uint256 asOf)
        external
        view
        returns (AccountRisk memory risk, Position memory merged, Inheritance memory result)
    {
        MarketTerms memory terms = RiskLens.termsAt(market, asOf);
        RiskTerms memory backstop = market.riskTerms();
        Valuation memory valuation = RiskLens.valuationOf(market, terms, price);
        BackstopLib.requireOther(backstop, account);
        risk = RiskLens.riskOf(market, terms, account, price, asOf);
        _requireDue(market, valuation, risk.position, account, asOf);
        Position memory held = RiskLens.positionAt(market, terms, backstop.backstop);
        (merged, result) = BackstopLib.inherit(held, risk.position, backstop, valuation, IMarginBank(market.bank()));
    }

    /// @notice The legs that `deleverage` would close, and the account afterwards. Reverts as the action would for an account
    /// that may not be deleveraged, and for counterparties that repeat or are not in the order of their scores.
    function previewDeleveraging(
        IIsolatedTrader market,
        address account,
        address[] calldata counterparties,
        uint256[] calldata steps,
        uint256 price,
        uint256 asOf
    ) external view returns (DeleveragedLeg[] memory legs, uint256[] memory scores, Position memory rest) {
        MarketTerms memory terms = RiskLens.termsAt(market, asOf);
        Valuation memory valuation = RiskLens.valuationOf(market, terms, price);
        rest = RiskLens.positionAt(market, terms, account);
        _requireDeleverageable(market, terms, valuation, rest, account, asOf);
        DeleverageLib.requireDistinct(counterparties, steps);
        DeleverageLib.Rank memory rank;
        legs = new DeleveragedLeg[](counterparties.length);
        scores = new uint256[](counterparties.length);
        for (uint256 i; i < counterparties.length; ++i) {
            legs[i].counterparty = counterparties[i];
            Position memory other = RiskLens.positionAt(market, terms, counterparties[i]);
            if (!DeleverageLib.opposes(rest, other)) continue;
            bool qualifies;
            (qualifies, scores[i]) = DeleverageLib.score(other, valuation);
            if (!qualifies) continue;
            DeleverageLib.requireRank(rank, counterparties[i], scores[i]);
            (uint256 closed, uint256 payout) = DeleverageLib.closeAgainst(rest, other, steps[i]);
            // Widths as in `LiquidationLib._closeLeg`.
            (legs[i].steps, legs[i].payout) = (uint64(closed), uint96(payout));
        }
    }

    /// @notice Whether and how the market can end at the current block.
    function previewEnding(IIsolatedTrader market) external view returns (EndingPreview memory) {
        return RiskLens.endingOf(market);
    }

    // ------------------------------------------------------------------ internals

    /// @dev Reverts unless the account is below MMR, and has no equity left or had time to add margin after a pause.
    function _requireDue(
        IIsolatedTrader market,
        Valuation memory valuation,
        Position memory position,
        address account,
        uint256 asOf
    ) private view returns (int256 equityX) {
        equityX = MarginLib.requireBelowMaintenance(position, valuation, account);
        if (equityX > 0) PauseLib.requireGraceOver(IMarginBank(market.bank()), asOf, account);
    }

    function _requireDeleverageable(
        IIsolatedTrader market,
        MarketTerms memory terms,
        Valuation memory valuation,
        Position memory position,
        address account,
        uint256 asOf
    ) private view {
        int256 equityX = _requireDue(market, valuation, position, account, asOf);
        if (equityX <= 0) return;
        RiskTerms memory backstop = market.riskTerms();
        Position memory held = RiskLens.positionAt(market, terms, backstop.backstop);
        BackstopLib.requireUnable(held, position, backstop, valuation, IMarginBank(market.bank()), account, equityX);
    }

    function _read(uint256 pointer, OrderFill memory order) private pure returns (uint256 next) {
        RecordHead head;
        RecordBody body;
        (head, body, next) = OrderLib.read(pointer);
        order.maker = head.maker();
        order.flags = body.flags();
        order.salt = body.salt();
        order.buy = body.isBuy();
        order.reduceOnly = body.isReduceOnly();
        order.quantity = head.quantity();
        order.price = body.price();
        order.trigger = body.trigger();
        order.triggerCondition = body.triggerCondition();
        order.leverage = body.leverage();
        order.expiration = body.expiration();
        order.fill = head.fill();
        order.taker = body.taker();
        order.slot = body.slot();
        order.forced = body.isForced();
        if (!order.forced) (order.r, order.s) = OrderLib.readSignature(pointer);
        order.v = 27 + body.parity();
    }
}
