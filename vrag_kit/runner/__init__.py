"""The command line: run all notebooks, measure TREC files, check data, draw the Field
Guide.
"""
