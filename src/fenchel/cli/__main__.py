from fenchel.cli import main

main()
