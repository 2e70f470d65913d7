// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MarketKind} from "../../../contracts/types/Market.sol";
import {ExchangeHandler} from "./ExchangeHandler.sol";
import {Listing} from "./ExchangeFixture.sol";
import {deploy, holds, same} from "./Vm.sol";

/// @title Laws that hold after every step of every run, in every kind of market
abstract contract ExchangeInvariants {
    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    ExchangeHandler internal handler;

    function _listing() internal pure virtual returns (Listing memory);

    function setUp() public {
        handler = ExchangeHandler(deploy("ExchangeHandler", abi.encode(_listing())));
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    /// @dev Every third step is a trade.
    function targetSelectors() public view returns (FuzzSelector[] memory targets) {
        bytes4[] memory steps = new bytes4[](21);
        steps[0] = handler.trade.selector;
        steps[1] = handler.cancel.selector;
        steps[2] = handler.cancelAll.selector;
        steps[3] = handler.pass.selector;
        steps[4] = handler.deposit.selector;
        steps[5] = handler.donate.selector;
        steps[6] = handler.requestWithdrawal.selector;
        steps[7] = handler.withdraw.selector;
        steps[8] = handler.collectFees.selector;
        steps[9] = handler.attemptUnauthorized.selector;
        steps[10] = handler.fund.selector;
        steps[11] = handler.adjust.selector;
        steps[12] = handler.inherit.selector;
        steps[13] = handler.deleverage.selector;
        steps[14] = handler.liquidate.selector;
        for (uint256 i = 15; i < steps.length; ++i) steps[i] = handler.trade.selector;
        targets = new FuzzSelector[](1);
        targets[0] = FuzzSelector(address(handler), steps);
    }

    /// @notice One run checks all laws; the error names the law that does not hold.
    function invariant_exchange() public view {
        ExchangeHandler.Totals memory total = handler.totals(_prices());
        _bankBacked(total);
        _longsEqualShortsAtAnyPrice(total);
        _checkThisMarket(total);
    }

    /// @dev The prices at which equities are summed.
    function _prices() internal pure virtual returns (uint256[3] memory) {
        return [uint256(0), 5e17, 1e18];
    }

    /// @dev Laws of this market only.
    function _checkThisMarket(ExchangeHandler.Totals memory total) internal pure virtual {}

    /// @dev The bank's tokens equal its liabilities plus the donations.
    function _bankBacked(ExchangeHandler.Totals memory total) private view {
        same("bankBacked", total.owed + int256(handler.donated()), total.tokens);
        same("bankBacked: in and out", int256(handler.deposited() - handler.withdrawn()), total.owed);
    }

    /// @dev Sizes sum to zero, and the pool equals the sum of the accounts' equities at any price, to the wei.
    function _longsEqualShortsAtAnyPrice(ExchangeHandler.Totals memory total) private pure {
        same("longsEqualShorts", 0, total.size);
        for (uint256 i; i < 3; ++i) same("priceFreeSolvency", total.pool * 1e18, total.equitiesX[i]);
    }

    /// @notice Requires that enough parts and adjustments succeeded for the run to be meaningful; then every account exits.
    function afterInvariant() public {
        holds("enough parts settle", handler.sentParts() < 12 || handler.settledParts() * 20 >= handler.sentParts());
        holds("enough adjustments succeed", handler.adjustments() < 12 || handler.adjusted() * 20 >= handler.adjustments());
        handler.everyAccountExits();
        _bankBacked(handler.totals(_prices()));
    }
}

contract PerpetualInvariants is ExchangeInvariants {
    function _listing() internal pure override returns (Listing memory) {
        return Listing(MarketKind.Perpetual, 1e17, 1e15, 20, 45_000, 22_500, 100, 500, 40_000, 500_000, false);
    }
}

contract FutureInvariants is ExchangeInvariants {
    function _listing() internal pure override returns (Listing memory) {
        return Listing(MarketKind.Future, 5e17, 1e16, 5, 180_000, 90_000, 100, 2_000, 0, 20_000, false);
    }
}

contract BinaryInvariants is ExchangeInvariants {
    function _listing() internal pure override returns (Listing memory) {
        return Listing(MarketKind.BinaryFuture, 1e15, 1e18, 5, 180_000, 90_000, 1_000, 20_000, 0, 500, false);
    }
}

/// @notice Without leverage a binary market is fully covered at either final price.
contract CoveredBinaryInvariants is ExchangeInvariants {
    function _listing() internal pure override returns (Listing memory) {
        return Listing(MarketKind.BinaryFuture, 1e15, 1e18, 1, 1_000_000, 500_000, 1_000, 20_000, 0, 500, false);
    }

    function _checkThisMarket(ExchangeHandler.Totals memory total) internal pure override {
        holds("binaryFullyBacked: no", total.leastX[0] >= 0);
        holds("binaryFullyBacked: yes", total.leastX[2] >= 0);
    }
}

/// @notice At a constant price no account gains from the others, whatever they do together.
contract SteadyPriceInvariants is ExchangeInvariants {
    function _listing() internal pure override returns (Listing memory) {
        return Listing(MarketKind.Perpetual, 1e17, 1e15, 20, 45_000, 22_500, 100, 500, 0, 499_999, true);
    }

    function _prices() internal pure override returns (uint256[3] memory) {
        return [uint256(0), 5e17, 499_999 * 1e17];
    }

    function _checkThisMarket(ExchangeHandler.Totals memory total) internal pure override {
        holds("samePriceNoProfit", total.gainX[2] <= 0);
    }
}
